"""The commands of the gate, of calibration, and of comments on pull requests."""
