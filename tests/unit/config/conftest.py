from pathlib import Path

import pytest

from cranfield.base.errors import ConfigError
from cranfield.config import Config, load_config

EXAMPLE = r"""
testset: queries.yaml
k: 10
measures: [nDCG@10, RR@10]
primary: nDCG@10
convention: trec
test: permutation
alpha: 0.05
margin: 0.02
limits: {max_failed_share: 0.1, min_judged_share: null}
baseline: old
candidate: new
systems:
  old:
    command: [bin/search, "{query}", --limit, "{k}", --min-ios, "{params.min_ios}"]
    cwd: .
    env: {LANG: C}
    timeout_s: 30
    concurrency: 1
    order: given
    extract: {regex: '(?P<id>docs://[^\s`]+)'}
    empty: 'No results'
    preflight:
      - binary: bin/search
      - file: conf.json
        contains: /data/search.db
      - file: conf.json
        equals_json: {path: baseDirectory, value: /data}
      - probe: Hashable
  new:
    command: ["{python}", search.py, --boost, 1.10, --limit, "{k}", --, "{query}"]
    order: descending
    extract: {json: 'results[]', id: uri, score: score, title: title, span: span, fields: {confidence: meta.confidence}}
"""


@pytest.fixture
def example() -> str:
    """A config that says nearly all that can be said."""
    return EXAMPLE


@pytest.fixture
def load(tmp_path: Path):
    """Write a config and load it."""

    def _load(text: str, name: str = "cranfield.yaml") -> Config:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return load_config(path)

    return _load


@pytest.fixture
def problems_of(load):
    """Problems of a config that must not load: (line, text) pairs, in order."""

    def _problems(text: str) -> list[tuple[int | None, str]]:
        with pytest.raises(ConfigError) as caught:
            load(text)
        return [(problem.line, str(problem)) for problem in caught.value.problems]

    return _problems
