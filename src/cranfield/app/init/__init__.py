"""`cranfield init`: from files, addresses and commands to a config that runs. Each module finds out one thing."""
