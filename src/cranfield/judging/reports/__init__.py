"""Reports of pools, books, raters and holes."""
