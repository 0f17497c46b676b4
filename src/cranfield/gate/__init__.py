"""Rules that a system must keep, the baseline they compare with, and the results."""
