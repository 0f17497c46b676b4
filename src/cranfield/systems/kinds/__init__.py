"""Kinds of system under test: one file per kind, and what each kind needs. `build` makes systems from a config."""
