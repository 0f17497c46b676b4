"""evaluate -> Evaluation, compare -> Comparison and Verdict."""
