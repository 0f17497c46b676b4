"""What is done with the systems of a config."""

from __future__ import annotations

from scenes.scene import HANDBOOK_CONFIG, TEXT_AND_JSON, Scene, forms, point

SCENES = [
    Scene(
        "run",
        [
            *forms("run cranfield.yaml"),
            "run cranfield.yaml --out kept",
            *forms(
                "evaluate handbook/queries.yaml kept/runs/plain.jsonl",
                "compare handbook/queries.yaml kept/runs/plain.jsonl kept/runs/titles.jsonl -m nDCG@10",
            ),
            "history cranfield.yaml --format json",
            "baseline accept cranfield.yaml --reason first",
            *forms("baseline show cranfield.yaml", only=TEXT_AND_JSON),
            *forms("gate cranfield.yaml"),
            "gate cranfield.yaml --junit gate.xml --markdown gate.md",
            "metrics kept/results.json --testset queries",
            "system list --config cranfield.yaml",
            "system show titles --config cranfield.yaml",
            "alerts cranfield.yaml",
            "dashboard",
        ],
        {"cranfield.yaml": HANDBOOK_CONFIG},
        ["examples/handbook"],
        timed=True,
    ),
    Scene(
        "history",
        [*forms("history cranfield.yaml", "history cranfield.yaml --drop 0.04")],
        {
            "cranfield.yaml": HANDBOOK_CONFIG,
            ".cranfield/history.jsonl": "".join(
                point(n, mean) for n, mean in enumerate([0.80, 0.81, 0.80, 0.74, 0.75])
            ),
        },
        ["examples/handbook"],
    ),
]
