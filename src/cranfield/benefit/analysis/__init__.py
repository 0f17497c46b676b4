"""The statistics of an experiment: from scored cells to paired estimates and verdicts. `analyse` is the entry."""
