"""Figures of evaluations as Prometheus metrics: one table of families, and what is written from it."""
