"""One file a family of measures: the rows of the catalogue and the kernels only they use."""
