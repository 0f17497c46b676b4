"""The web pages and the API. No SQL."""
