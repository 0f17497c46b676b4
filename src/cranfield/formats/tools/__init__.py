"""Formats of other evaluation tools and catalogues: one file each."""
