"""The text of a document, from where it lies, made safe to show."""
