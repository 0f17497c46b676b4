"""Results as flat dictionaries for dashboards: stable keys of letters, digits and `_`, each with a number or a text.

Such keys are valid in MLflow, W&B and TensorBoard alike: `nDCG@10` is `ndcg_at_10`. No key is the folder of another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite

from cranfield.measures import Measure

FlatValue = float | int | str
UNDEFINED = "undefined"
"""Key of the text with the keys that have no value."""
_OTHERS = re.compile(r"[^0-9a-z]+")


def key_of(text: str) -> str:
    """The key of a measure or a name; empty where nothing of it can be in a key.

    Example:
        >>> [key_of(text) for text in ("nDCG@10", "P(rel=2)@5", "RBP(p=0.8)", "my system", "0.5 * RR + 0.5 * AP")]
        ['ndcg_at_10', 'p_rel_2_at_5', 'rbp_p_0_8', 'my_system', '_0_5_rr_0_5_ap']
    """
    key = _OTHERS.sub("_", text.lower().replace("@", "_at_")).strip("_")
    return f"_{key}" if key[:1].isdigit() else key


def measure_keys(measures: Iterable[Measure]) -> dict[Measure, str]:
    """Measure to its key; of two with the same key the later one gets a number."""
    measures = list(measures)
    return dict(zip(measures, unique_keys(measure.canonical for measure in measures), strict=True))


def unique_keys(names: Iterable[str], otherwise: str = "other") -> list[str]:
    """A key for each name; one that is taken gets a number, and a name without letters has the key `otherwise`."""
    found: list[str] = []
    for name in names:
        key = first = key_of(name) or otherwise
        number = 1
        while key in found:
            number += 1
            key = f"{first}_{number}"
        found.append(key)
    return found


def flat(pairs: Iterable[tuple[str, FlatValue | None]]) -> dict[str, FlatValue]:
    """The values that are known; the keys of the others, in order, are the text of `undefined`.

    Of two with the same key that do not have the same value the later one gets a number.
    """
    found: dict[str, FlatValue | None] = {}
    for name, value in pairs:
        key, number = name, 1
        while key in found and found[key] != value:
            number += 1
            key = f"{name}_{number}"
        found[key] = value
    known = {key: value for key, value in found.items() if _is_known(value)}
    left_out = [key for key in found if key not in known]
    return known | ({UNDEFINED: " ".join(left_out)} if left_out else {})  # type: ignore[return-value]


def _is_known(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int | float) and isfinite(value))
