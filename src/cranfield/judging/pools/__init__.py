"""Pools: which results are worth a judgment, and the holes that can flip a verdict."""
