"""Rules that a system must keep, a frozen baseline to hold it against, and what came of it."""
