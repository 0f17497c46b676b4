"""Benefit: whether a retrieval tool helps an agent, net of what it costs. Two arms, the same tasks, paired by task."""
