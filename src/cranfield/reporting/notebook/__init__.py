"""Values in notebooks: cards and frames."""
