"""Looking after test sets: validation, figures, differences, splits, refresh. Files are read and written elsewhere."""
