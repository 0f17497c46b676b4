"""Reports of test sets and of their versions."""
