"""The MCP server: an agent reads evaluations, compares systems and asks those that the operator allows."""
