"""Kinds of system under test, one module per kind; `build` makes systems from a config."""
