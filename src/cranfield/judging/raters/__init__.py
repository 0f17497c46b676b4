"""Ratings of several raters: their agreement, their scales, their files."""
