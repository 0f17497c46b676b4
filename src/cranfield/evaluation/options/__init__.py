"""The options of loading a test set, of scoring, of comparing and of collecting: each declared once.

A field of a block says its type, bounds, default and help. The command line, the configuration file, the requests of REST and
MCP, the check of values from Python and the reference pages are made from that.
"""
