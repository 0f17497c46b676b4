"""One file a format, read and written without a thought of what it means. Start at `sniff`, which tells them apart."""
