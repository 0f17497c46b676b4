"""The commands of pools, books, agreement and refreshes."""
