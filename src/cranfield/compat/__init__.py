"""Other tools' interfaces over this package's engine. Empty: import `pytrec_eval` or `ir_measures` from it."""
