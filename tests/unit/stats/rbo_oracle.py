"""Writes `rbo_oracle.json`: pairs of lists with the `rbo_ext` of the package rbo, which asks for an old numpy and so is no dependency.

pip install --no-deps rbo==0.1.3 --target rbo-folder && PYTHONPATH=rbo-folder python tests/unit/stats/rbo_oracle.py
"""

import json
import random
from pathlib import Path

import rbo

chance = random.Random(20101)
cases = []
for _ in range(150):
    first = chance.sample(range(24), chance.randint(1, 15))
    second = chance.sample(range(24), chance.randint(1, 15))
    p = chance.choice([0.5, 0.8, 0.9, 0.98])
    cases.append([first, second, p, rbo.RankingSimilarity(first, second).rbo_ext(p)])
text = "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"
Path(__file__).with_suffix(".json").write_text(text)
