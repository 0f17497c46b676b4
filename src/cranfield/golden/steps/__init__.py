"""Steps of the pipeline: author and screen, oracle and gate, adversary and judge."""
