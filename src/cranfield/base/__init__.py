"""What every room may import: problems, words and numbers for people, patterns, platforms, processes."""
