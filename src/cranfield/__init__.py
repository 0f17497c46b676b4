"""Cranfield: did your search get better, worse or stay the same?"""

__version__ = "0.1.0"
