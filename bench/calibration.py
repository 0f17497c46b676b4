"""How often the diagnosis of `cranfield calibrate` is right: simulated scores. `calibration.py [SIMULATIONS]` prints a table.

Scores are uniform from 0 to 1; an answer is correct with the probability score - bias, within 0 and 1. `docs/how-to/calibration.md`
has the table.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np

from cranfield.calibration.answers import Correctness, ScoredAnswer, ScoredAnswers
from cranfield.calibration.diagnosis import Diagnosis
from cranfield.calibration.report import CalibrationOptions, calibrate

SEED = 7
DRAWS = 399
SIZES = (20, 60, 200, 500)
BIASES = (0.0, 0.1, 0.2)
SHOWN = (Diagnosis.WELL_CALIBRATED, Diagnosis.INSUFFICIENT_DATA, Diagnosis.OVER_CONFIDENT)


def diagnosis(n: int, bias: float, rng: np.random.Generator) -> Diagnosis:
    """Of one simulated sample."""
    scores = rng.random(n)
    right = rng.random(n) < np.clip(scores - bias, 0, 1)
    pairs = enumerate(zip(scores.tolist(), right.tolist(), strict=True))
    answers = [ScoredAnswer(str(place), score, {Correctness.STATED: ok}) for place, (score, ok) in pairs]
    return calibrate(ScoredAnswers("simulated", "score", {}, answers), CalibrationOptions(draws=DRAWS)).diagnosis


def main(n_simulations: int) -> None:
    """Print the share of each diagnosis, by bias and number of answers."""
    print(f"{'bias':>5} {'n':>5} " + " ".join(f"{shown.value:>18}" for shown in SHOWN) + f" {'others':>18}")
    for bias in BIASES:
        for n in SIZES:
            rng = np.random.default_rng([SEED, n, round(bias * 100)])
            found = Counter(diagnosis(n, bias, rng) for _ in range(n_simulations))
            shares = [found[shown] / n_simulations for shown in SHOWN]
            print(f"{bias:>5.1f} {n:>5} " + " ".join(f"{share:>18.3f}" for share in (*shares, 1 - sum(shares))))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
