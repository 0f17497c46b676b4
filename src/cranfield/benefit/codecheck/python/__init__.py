"""Python: compiled, and checked against the standard library and typed packages by a type checker."""
