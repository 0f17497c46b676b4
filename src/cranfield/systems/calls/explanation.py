"""Read how a score came about from what engines give: trees of Lucene and tantivy, features of Vespa and of learned rankers.

Source: the JSON of `explain` in the search APIs of Elasticsearch and OpenSearch, of `debug.explain.structured` and `[explain style=nl]`
of Solr (Lucene's `Explanation`: value, description, details), `matchfeatures` and `summaryfeatures` of Vespa (name to number), and
`Explanation.to_json` of tantivy. Names are made the same for every document: `weight(title:cat in 12) [PerFieldSimilarity], result of:`
is `title:cat`, `idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:` is `idf`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cranfield.formats.runs.record import finite
from cranfield.model import Explanation
from cranfield.model.explanation import NOT_READ, Children, bounded

MAX_JSON = 1_000_000
"""Characters of an explanation that is a text of JSON."""
_WEIGHT = re.compile(r"(?:weight|fieldWeight)\((?P<clause>.+?)(?:\^[\d.E+-]+)? in \d+\)", re.DOTALL)
_SYNONYM = re.compile(r"Synonym\((?P<terms>.+)\)", re.DOTALL)
_FIELD = re.compile(r"(?P<field>[\w.@-]+):(?P<text>.+)", re.DOTALL)
_OF_DOCUMENT = re.compile(
    r"\((?:doc|freq|docFreq)=[^)]*\)| in \d+$|=-?[\d.]+(?:[eE][+-]?\d+)?$|\^[\d.]+(?:[eE][+-]?\d+)?$"
)
_BOOSTED = re.compile(r"\^[\d.]+$")
_TIES = re.compile(r"max plus (?P<tie>[\d.]+(?:[eE][+-]?\d+)?) times others of")
_TANTIVY_BOOST = re.compile(r"Boost x(?P<boost>[\d.]+(?:[eE][+-]?\d+)?) of")
_TANTIVY_TERM = re.compile(r'Term=Term\(field=(?P<field>\d+), type=\w+, (?P<text>".*")\)', re.DOTALL)
_COMBINES = re.compile(r"(?:BooleanClause\. )?(?P<how>sum|max|min|product) of")


def read_explanation(value: object) -> Explanation | None:
    """The explanation of a score, in any of the forms; a tree named `not read` where it is of none of them, None where there is none.

    Example:
        >>> found = read_explanation({"bm25(title)": 2.5, "freshness": 0.5})
        >>> [(part.name, part.value) for part in found.children]
        [('bm25(title)', 2.5), ('freshness', 0.5)]
    """
    if value is None:
        return None
    return _read(_parsed(value)) or Explanation(NOT_READ, cut=1)


def _parsed(value: object) -> object:
    """What a text of JSON holds; other values as they are."""
    if not isinstance(value, str) or len(value) > MAX_JSON:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _read(value: object) -> Explanation | None:
    if isinstance(value, Explanation):
        return bounded(value, _own_part)
    if not isinstance(value, Mapping):
        return None
    if "description" in value and "value" in value:
        found = bounded(value, _lucene_part)
        return None if found is None else _with_boosts(found)
    is_written = isinstance(value.get("name"), str) and ("value" in value or "children" in value)
    return bounded(value, _written_part) if is_written else bounded(("features", value), _feature)


def _own_part(part: Any) -> tuple[str, float | None, Children, int] | None:
    return (part.name, finite(part.value), part.children, part.cut) if isinstance(part, Explanation) else None


def _written_part(part: Any) -> tuple[str, float | None, Children, int] | None:
    """A part of the form that Cranfield writes: name, value, children, cut."""
    if not isinstance(part, Mapping) or not isinstance(part.get("name"), str):
        return None
    cut = part.get("cut", 0)
    n_cut = cut if isinstance(cut, int) and not isinstance(cut, bool) and cut > 0 else 0
    return part["name"], finite(part.get("value")), _listed(part.get("children")), n_cut


def _feature(part: Any) -> tuple[str, float | None, Children, int] | None:
    """A name and its number, or a name and a mapping of such; what is neither is cut."""
    name, value = part
    if isinstance(value, bool):
        return str(name), float(value), (), 0
    if isinstance(value, Mapping):
        # Vespa reports with the features whether it computed them anew.
        below = [(key, each) for key, each in value.items() if not str(key).startswith("vespa.")]
        return (str(name), None, below, 0) if below else None
    number = finite(value)
    return None if number is None else (str(name), number, (), 0)


def _lucene_part(part: Any) -> tuple[str, float | None, Children, int] | None:
    """A part of Lucene's form: value, description, details; `context` is tantivy's."""
    if not isinstance(part, Mapping) or not isinstance(part.get("description"), str):
        return None
    description = part["description"].strip()
    below: list[Any] = [*_listed(part.get("details"))]
    name = description_name(description)
    if (ties := _TIES.match(description)) is not None:
        below.append({"value": float(ties["tie"]), "description": "tie"})
    elif (boosted := _TANTIVY_BOOST.match(description)) is not None:
        below.append({"value": float(boosted["boost"]), "description": "boost"})
    elif description.startswith("TermQuery"):
        name = _tantivy_term(part.get("context")) or name
        below.append({"value": 1.0, "description": "boost"})
    elif "computed as boost *" in description and not any(_is_boost(each) for each in below):
        # Lucene leaves a boost of 1 out.
        below.append({"value": 1.0, "description": "boost"})
    return name, finite(part.get("value")), below, 0


def _is_boost(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("description") == "boost"


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def description_name(description: str) -> str:
    """The name of a part by Lucene's description of it: without numbers of documents, formulas and values.

    Example:
        >>> description_name("weight(title:cat in 12) [PerFieldSimilarity], result of:")
        'title:cat'
        >>> description_name("idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:")
        'idf'
    """
    if (weight := _WEIGHT.match(description)) is not None:
        return _clause_name(weight["clause"])
    if _TIES.match(description) or _TANTIVY_BOOST.match(description):
        return "max" if description.startswith("max") else "boost of"
    if (combines := _COMBINES.match(description)) is not None:
        return combines["how"]
    if description.startswith("score("):
        return "score"
    if description.startswith("freq /"):
        return "tf"
    head = _before_comma(description.rstrip(": "))
    return _OF_DOCUMENT.sub("", head).strip() or description


def _clause_name(clause: str) -> str:
    """`title:(cat cats)` of synonyms, which Lucene writes with the field before each."""
    synonym = _SYNONYM.fullmatch(clause)
    if synonym is None:
        return clause
    terms = [_FIELD.fullmatch(term) for term in synonym["terms"].split(" ")]
    fields = {term["field"] for term in terms if term is not None}
    if len(fields) != 1 or None in terms:
        return clause
    words = [_BOOSTED.sub("", term["text"]) for term in terms if term is not None]
    return f"{fields.pop()}:({' '.join(words)})"


def _before_comma(text: str) -> str:
    """The text up to its first comma outside of brackets and quotes."""
    depth, quoted = 0, False
    for at, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif not quoted and char in "([{":
            depth += 1
        elif not quoted and char in ")]}":
            depth -= 1
        elif char == "," and depth <= 0 and not quoted:
            return text[:at]
    return text


def _tantivy_term(context: object) -> str | None:
    """`field 0:cat`: tantivy knows a field by its number in the schema."""
    for line in _listed(context):
        found = _TANTIVY_TERM.fullmatch(line) if isinstance(line, str) else None
        if found is not None:
            try:
                return f"field {found['field']}:{json.loads(found['text'])}"
            except ValueError:
                return None
    return None


def _with_boosts(part: Explanation) -> Explanation:
    """The tree with the boosts of tantivy, which wrap a term, as parts of that term."""
    children = tuple(map(_with_boosts, part.children))
    if part.name == "boost of" and len(children) == 2:
        inner, boost = children
        times = [child.value for child in inner.children if child.name == "boost"]
        if len(times) == 1 and times[0] is not None and boost.value is not None:
            own = tuple(_times(boost.value, inner.children))
            return Explanation(inner.name, part.value, own, part.cut + inner.cut)
    return replace(part, children=children)


def _times(boost: float, parts: Sequence[Explanation]) -> Iterator[Explanation]:
    for part in parts:
        is_boost = part.name == "boost" and part.value is not None
        yield replace(part, value=part.value * boost) if is_boost and part.value is not None else part
