"""The text of a document, read from where the operator's file says that it is."""
