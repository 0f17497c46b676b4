"""Runs: one file per format."""
