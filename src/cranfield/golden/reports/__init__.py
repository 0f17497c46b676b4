"""Reports of golden sets."""
