"""Concurrency and child processes: one event loop, threads for blocking functions, supervised programs, signals."""
