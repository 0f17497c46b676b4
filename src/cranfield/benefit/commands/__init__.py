"""Commands of the benefit of a tool."""
