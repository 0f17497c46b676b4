"""Evidence checks: named tests of whether scores measure what they should, between collection and verdict."""
