"""What is done with a test set: splits, edits, checks, the consensus of raters."""
