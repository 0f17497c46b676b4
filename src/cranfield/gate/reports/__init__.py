"""Reports of a gate and of a calibration."""
