"""Judging: pools of results, books in a database, raters, agreement, adjudication, frozen test sets. No HTML."""
