"""Queries of a test set replaced by queries of a log, judged by two raters."""
