"""Answers of agents, scored against the labels of a golden set: structure first, then facts, then the narrative."""
