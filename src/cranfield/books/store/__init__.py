"""The database of books: one schema for SQLite and PostgreSQL, migrations, and everything that is read or written."""
