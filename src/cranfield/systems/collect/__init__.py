"""Collection of runs: preflight, order of calls, journal, answer cache, progress."""
