"""Calibration: the confidence that a system reports, against whether it was right."""
