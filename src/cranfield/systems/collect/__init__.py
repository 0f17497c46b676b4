"""A collection: preflight, the order of calls, the journal, the answer cache, progress."""
