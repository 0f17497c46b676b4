"""Evaluations on a schedule."""
