"""Reports of experiments and of scored answers."""
