"""Books of judgments in a database: tables, accounts, the queue of raters."""
