"""Tools that agents call: read-only, over the files of a snapshot."""
