"""Models as raters: prompts, budget, calls, and how far they agree with people."""
