"""Charts as Vega-Lite specifications: plain data in, a plain dict out."""
