"""The tables of the service, and everything that is read from them or written into them."""
