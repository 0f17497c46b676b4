"""The commands of `testset`."""
