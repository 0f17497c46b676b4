"""A database, SQLite or PostgreSQL: connections, transactions, and the migrations of its tables."""
