"""Files as data with places: opening and replacing them, trees of YAML and JSON, tables of text and of columns."""
