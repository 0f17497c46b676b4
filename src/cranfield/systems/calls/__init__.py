"""One call to a system: processes, threads, the event loop, and reading its output."""
