"""Checks of generated code: it compiles, its symbols exist, are available on the target, and are not deprecated."""
