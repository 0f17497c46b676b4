"""A source repository as evidence: its symbols, and whether what a test set expects is still there."""
