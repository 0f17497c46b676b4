"""Traces of applications: the spans of retrievers and rerankers, as runs and as queries."""
