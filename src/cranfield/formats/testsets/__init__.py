"""Test sets, judgments, topics and strata: one file per format, and the format of Cranfield itself."""
