"""Other tools' interfaces over this package's engine: trec_eval's command line, `pytrec_eval` and `ir_measures`."""

from cranfield.plugins import Product

PRODUCT = Product(
    name="compat",
    commands={"Evaluate": {"trec_eval": "cranfield.compat.command"}},
)
