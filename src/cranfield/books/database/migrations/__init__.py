"""Revisions of the schema, in `versions`: each upgrades a database by one step."""
