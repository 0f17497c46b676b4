"""Changing a file of a test set in its text: what the change does not touch stays as it is, byte for byte."""
