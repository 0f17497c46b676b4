"""The sections of a report: each function takes a `Subject` and returns a `Section`, or None where it does not apply.

All knowledge of evaluations and comparisons that the report has is in here; how anything looks is not.
"""
