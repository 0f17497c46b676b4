"""Answers of agents scored against labels: structure, facts, narrative."""
