"""When a result is the expected thing: exact ids, patterns, lines, entities, files and rows of a database."""
