"""A small harbour."""
