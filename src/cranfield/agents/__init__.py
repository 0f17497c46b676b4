"""Calls of language models: one protocol, the adapter of a library, budgets, retries, recordings."""
