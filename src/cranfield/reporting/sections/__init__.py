"""The sections of a report: each function takes what was found and returns blocks of the Document.

All knowledge of evaluations and comparisons that the report has is in here; how anything looks is not.
"""
