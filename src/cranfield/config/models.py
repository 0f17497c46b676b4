"""cranfield.yaml as pydantic models: its keys, their types and bounds.

The string under each field is its description in the published JSON Schema. The kinds of system are in `systems`, the
points of the block `grid:` in `grid`; blocks of products, such as `gate:`, are theirs. Reading the file is in `load`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, PrivateAttr, ValidationInfo, create_model, field_validator

from cranfield.base.errors import InternalError, Problem, UnknownNameError, UsageError
from cranfield.config.declared import EvidenceConfig, MeasureName, SetOptions, block_of, with_keys
from cranfield.config.documents import Source
from cranfield.config.owners import OfDigest, OfEach, OfNone, OfRef
from cranfield.config.strict import Finding, ProductBlock, Strict, checked, raise_findings
from cranfield.config.systems import FusionConfig, Name, Params, SystemConfig, SystemName
from cranfield.evaluation.options.blocks import (
    CollectOptions,
    CompareOptions,
    DifferenceOptions,
    LatencyRule,
    ScoringOptions,
)
from cranfield.evaluation.options.blocks import Limits as DeclaredLimits
from cranfield.evaluation.options.declaration import declared
from cranfield.evaluation.options.keys import at
from cranfield.formats.testsets.field_mapping import FieldMapping
from cranfield.model.kinds import FilledText, Text
from cranfield.plugins import part, products

LOG = logging.getLogger(__name__)
SUMMARY_FILES = frozenset({"report.html", "report.md", "results.json"})
"""Files that a run over several test sets writes next to the folders of the sets."""

HELD_OUT = 0.3
"""Default share of the queries held out, unless the test set has a split."""


def _check_system_name(name: str, info: ValidationInfo) -> str:
    raise_findings(_clashes("systems", name, info))
    if name.endswith(".log"):
        raise_findings([((), Problem(f"{name} would be the name of another run's log", hint="drop the .log"))])
    return name


def _check_set_name(name: str, info: ValidationInfo) -> str:
    raise_findings(_clashes("testsets", name, info))
    if name.casefold() in SUMMARY_FILES:
        raise_findings([((), Problem(f"{name} is the name of the summary's file", hint="choose another name."))])
    return name


def _clashes(key: str, name: str, info: ValidationInfo) -> Iterator[Finding]:
    """Names become file names, and some file systems do not tell Old from old."""
    names = [other for other in (info.context or {}).get(key, ()) if str(other).casefold() == name.casefold()]
    if name in names[1:]:
        yield (), Problem(f"{key} {' and '.join(names)} differ only in upper and lower case")


def _check_different(names: list[str]) -> Iterator[Finding]:
    if len(set(names)) < len(names):
        yield (), Problem("a system against itself", hint="name two systems, or one.")


def _check_fusions(systems: Mapping[str, SystemConfig]) -> Iterator[Finding]:
    for name in systems:
        if name in parts_of(systems, name):
            yield (name, "fusion", "fusion", "of"), Problem("the fusion lists itself as one of its parts")


def parts_of(systems: Mapping[str, SystemConfig], name: str) -> set[str]:
    """Every system that a fusion is made of, at any depth."""
    found: set[str] = set()
    left = [name]
    while left:
        system = systems.get(left.pop())
        parts = system.fusion.of if isinstance(system, FusionConfig) else []
        left += [part for part in parts if part not in found]
        found |= set(parts)
    return found


_SCORING = declared(ScoringOptions)
_COMPARE = at("config", CompareOptions)
if TYPE_CHECKING:
    Collect = Strict
    Diff = Strict
    Latency = Strict
    Limits = Strict
else:
    Collect = with_keys(
        Strict,
        "Collect",
        at("config", CollectOptions),
        doc="How queries are sent to systems.",
    )
    Diff = with_keys(
        Strict,
        "Diff",
        at("config", DifferenceOptions),
        doc="How `cranfield diff` compares two systems without judgments, and bounds that must hold.",
    )
    Latency = with_keys(Strict, "Latency", declared(LatencyRule).values(), doc=LatencyRule.__doc__)
    Limits = with_keys(
        Strict,
        "Limits",
        [each for name, each in declared(DeclaredLimits).items() if name != "evidence"],
        doc=DeclaredLimits.__doc__,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedFile(FieldMapping):
    """A file of queries of any form, and which of its fields say what; without fields they are proposed from its data."""

    file: FilledText
    """The file, relative to the config file: JSON, JSON Lines, YAML, TOML, CSV, Excel or Parquet."""


class _SetConfig(Strict):
    """One of several test sets, and the settings that differ for it."""

    path: OfDigest[str]
    """Test-set file, relative to the config file."""
    mapping: OfDigest[FieldMapping | None] = None
    """Which fields of a file of queries of any form say what; default: proposed from its data."""
    params: OfRef[Params] = Field(default_factory=dict)
    """Parameters of every query of the set, `{params.NAME}` in a command; params of a query take precedence."""
    k: OfRef[Annotated[int, Field(ge=1)] | None] = None
    """Number of results requested from each system; default: that of the config, or the deepest cutoff."""
    measures: OfRef[Annotated[list[MeasureName], Field(min_length=1)] | None] = None
    """Measures to report; default: those of the config."""
    primary: OfRef[MeasureName | None] = None
    """Primary measure; default: the first of the `measures` of this set, else that of the config."""
    systems: OfRef[Annotated[list[SystemName], Field(min_length=1), checked(_check_different)] | None] = None
    """Only these systems: one, baseline and candidate, or more; default: those of the config."""
    repo: OfRef[str | None] = None
    """Folder of the repository that the set is checked against; default: that of the config."""
    options: OfRef[SetOptions] = Field(default_factory=SetOptions)
    """Options of this set; default, one by one: those of the config."""

    def stored_name(self, key: str) -> str:
        """Its name in a service and its metrics: that in the config, or of its file where the config gives it none."""
        return key or Path(self.path).stem or "testset"


if TYPE_CHECKING:
    SetConfig = _SetConfig
else:
    of_testset = [each for each in _COMPARE if "testset" in each.option.places]
    SetConfig = with_keys(_SetConfig, "SetConfig", of_testset, otherwise="that of the config")


class GridConfig(Strict):
    """Settings of a system to combine, and the held-out queries on which the best combination is evaluated."""

    system: Text
    """Name of the system that is varied."""
    over: Annotated[dict[str, Annotated[list[Any], Field(min_length=1)]], Field(min_length=1)]
    """Path of a setting of the system, with dots, to the values to try: `fusion.rrf_k: [10, 60]`, `params.boost: [1, 5]`. Every
    combination is a point, 500 of them at most."""
    held_out: Annotated[float, Field(gt=0, lt=1)] | str | None = None
    """Share of the queries on which the winner is judged, drawn within the strata; or `KEY=VALUE`, the stratum whose
    queries are held out. A stored split of the test set takes precedence over a share.
    Default: the stored split, or 0.3."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Random seed of the sample of held-out queries."""


def _misspells_testset(file: Mapping[str, Any]) -> bool:
    """Whether a key that the config does not have is close to `testset`."""
    unknown = [str(key) for key in file if key not in Config.model_fields]
    return bool(get_close_matches("testset", unknown, n=1, cutoff=0.7))


class _ConfigKeys(Strict):
    """The keys of a config before those that are options."""

    testset: OfDigest[str | MappedFile | None] = None
    """Test-set file, relative to the config file; or `file` with the fields of a mapping, for a file of queries of any form."""
    testsets: OfEach[
        Annotated[
            dict[Annotated[Name, AfterValidator(_check_set_name)], SetConfig],
            Field(min_length=1),
        ]
        | None
    ] = Field(default=None, validate_default=True)
    """Several test sets by name, instead of `testset`; each is run in turn, in a subfolder of its name."""
    repo: OfRef[str | None] = None
    """Folder of the repository that the test set is checked against, relative to the config file; a set that has drifted is
    refused, unless the call allows it."""
    options: OfRef[SetOptions] = Field(default_factory=SetOptions)
    """What is done to the test set before it is used: other judgments, strata, the line base, the depth."""
    k: OfRef[Annotated[int, Field(ge=1)] | None] = None
    """Number of results requested from each system; default: the deepest cutoff of the measures and rules, from 10 to 1000. A measure
    with a deeper cutoff has no value."""
    measures: OfRef[Annotated[list[MeasureName], Field(min_length=1)] | None] = None
    """Measures to report; default: the default measures."""


if TYPE_CHECKING:
    _DeclaredKeys = _ConfigKeys
else:
    _DeclaredKeys = with_keys(_ConfigKeys, "DeclaredKeys", [_SCORING["convention"], *_COMPARE, _SCORING["confusion"]])


class _CoreConfig(_DeclaredKeys):
    """A comparison: one or more test sets, two or more systems, and the settings of the verdict."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["testset"]}, {"required": ["testsets"]}]})

    collect: OfRef[Collect] = Field(default_factory=Collect)
    """How queries are sent: warm-up, repetitions, cache."""
    latency: OfRef[Latency] = Field(default_factory=Latency)
    """Which timings count, and the smallest difference at which a system is called faster or slower."""
    limits: OfRef[Limits] = Field(default_factory=Limits)
    """Limits on failures and judged share, beyond which the comparison is invalid."""
    evidence: OfRef[EvidenceConfig] = Field(default_factory=dict)
    """Settings of evidence checks that differ from their defaults, by name: `off`, `caveat`, `void`, a threshold, or both."""
    documents: OfNone[list[Source]] = Field(default_factory=list)
    """Sources of document texts for raters, in order, as in the operator's file; used where that has none."""
    grid: OfNone[GridConfig | None] = None
    """Settings of a system that `cranfield grid` tries."""
    diff: OfNone[Diff] = Field(default_factory=Diff)
    """How `cranfield diff` compares the two systems without judgments, and bounds by which it fails."""
    baseline: OfRef[SystemName | None] = None
    """Name of system A; with exactly two systems, the first by default."""
    candidate: OfRef[SystemName | None] = None
    """Name of system B; with exactly two systems, the second by default."""
    systems: OfEach[
        Annotated[
            dict[Annotated[Name, AfterValidator(_check_system_name)], SystemConfig],
            Field(min_length=1),
            checked(_check_fusions),
        ]
    ]
    """Systems under test by name."""

    _folder: Path = PrivateAttr(default_factory=Path)

    def scoring(self) -> ScoringOptions:
        """How runs are scored."""
        return block_of(ScoringOptions, self, limits=self._limits, latency=block_of(LatencyRule, self.latency))

    def collecting(self) -> CollectOptions:
        """How systems are queried."""
        return block_of(CollectOptions, self.collect)

    def differing(self) -> DifferenceOptions:
        """How two systems are compared without judgments."""
        return block_of(DifferenceOptions, self.diff)

    def comparing(self, chosen: SetConfig | None = None, *, seed: int = 0) -> CompareOptions:
        """What is declared of a comparison before any number is seen.

        Args:
            chosen: settings of the test set; None: those for all.
            seed: of everything random.
        """
        given = {} if chosen is None else {name: getattr(chosen, name) for name in ("primary", "verdict", "strata")}
        return block_of(CompareOptions, self, limits=self._limits, seed=seed, **given)

    def block(self, key: str) -> Any:
        """The block of a product; None where the file has none, or the product is not there."""
        return getattr(self, key, None)

    @property
    def _limits(self) -> DeclaredLimits:
        return block_of(DeclaredLimits, self.limits, evidence=self.evidence)

    def results_requested(self, chosen: SetConfig, measures: Iterable[str] = ()) -> int:
        """Number of results requested from each system for a test set.

        Args:
            chosen: settings of the test set.
            measures: of a call, besides those of the config.
        """
        from cranfield.measures import deepest_cutoff

        blocks = [block for key in product_blocks() if (block := self.block(key)) is not None]
        spelled = [*measures, *(chosen.measures or ()), *([chosen.primary] if chosen.primary else ())]
        spelled += [measure for block in blocks for measure in block.measures]
        depths = [depth for block in blocks for depth in block.depths]

        return chosen.k or self.k or deepest_cutoff(spelled, depths)

    @field_validator("testsets")
    @classmethod
    def _check_testsets(cls, testsets: Any, info: ValidationInfo) -> Any:
        if "testset" in info.data and (info.data["testset"] is None) == (testsets is None):
            if testsets is None and _misspells_testset(info.context or {}):
                return testsets  # the misspelt key is reported, with this one as the hint
            message, got = ("no test set", "none") if testsets is None else ("two keys for the test set", "both")
            raise_findings([((), Problem(message, expected="exactly one of testset and testsets", got=got))])
        return testsets

    @field_validator("candidate")
    @classmethod
    def _two_systems(cls, candidate: str | None, info: ValidationInfo) -> str | None:
        if candidate is None or "baseline" not in info.data:
            return candidate
        systems = (info.context or {}).get("systems")
        n_systems = len(systems) if isinstance(systems, dict) else 0
        if candidate == info.data["baseline"]:
            raise_findings([((), Problem("baseline and candidate are the same system", hint="name two systems."))])
        if n_systems > 2 and info.data["baseline"] is None:
            hint = "name the baseline too, or leave the candidate out to compare all systems."
            raise_findings(
                [((), Problem(f"a candidate without a baseline, and the config has {n_systems} systems", hint=hint))]
            )
        return candidate

    @property
    def folder(self) -> Path:
        """Folder that the paths in the config are relative to."""
        return self._folder

    @property
    def sets(self) -> Mapping[str, SetConfig]:
        """Every test set by name, with the defaults from the top of the file; a single test set has the name ""."""
        if self.testsets is None:
            mapped = self.testset if isinstance(self.testset, MappedFile) else None
            path = self.testset.file if isinstance(self.testset, MappedFile) else self.testset or ""
            mapping = None if mapped is None or mapped.record() == {} else mapped
            return {"": self._with_defaults(SetConfig(path=path, mapping=mapping))}
        return {name: self._with_defaults(testset) for name, testset in self.testsets.items()}

    def settings_of(self, name: str | None) -> SetConfig:
        """Settings of a test set; None: of one that the config does not have, whose files and options are not its own."""
        if name is not None:
            return self.sets[name]
        return self._with_defaults(SetConfig(path="")).model_copy(update={"options": SetOptions(), "repo": None})

    def set_name(self, name: str | None) -> str:
        """The name of one test set, "" for a single one; None is the only test set.

        Raises:
            UsageError: there are several and none is named, or a single one and a name is given.
            UnknownNameError: there is no such test set.
        """
        parameters = ("testset",)
        if self.testsets is None:
            if name is not None:
                hint = "leave out {testset}"
                raise UsageError("the config has one test set, without a name", hint=hint, parameters=parameters)
            return ""
        if name is None:
            expected = f"{{testset}} with one of {', '.join(self.testsets)}"
            raise UsageError(f"the config has {len(self.testsets)} test sets", expected=expected, parameters=parameters)
        if name not in self.testsets:
            raise UnknownNameError.among("test set", name, self.testsets)
        return name

    def _with_defaults(self, testset: SetConfig) -> SetConfig:
        names = ("k", "measures", "primary", "repo", "verdict", "strata")
        defaults = {name: getattr(self, name) for name in names}
        if testset.measures is not None:
            defaults["primary"] = None  # it need not be among this set's own
        update = {name: value for name, value in defaults.items() if getattr(testset, name) is None}
        return testset.model_copy(update={**update, "options": testset.options.over(self.options)})

    @property
    def pair(self) -> tuple[str, str] | None:
        """Names of baseline and candidate; None when there is one system only."""
        names = list(self.systems)
        if self.baseline is not None and self.candidate is not None:
            return self.baseline, self.candidate
        if len(names) != 2:
            return None
        if self.baseline is not None:
            return self.baseline, next(name for name in names if name != self.baseline)
        if self.candidate is not None:
            return next(name for name in names if name != self.candidate), self.candidate
        return names[0], names[1]


@cache
def product_blocks() -> Mapping[str, type[ProductBlock]]:
    """Key of the config to the model of its block, for the keys that products add.

    Raises:
        InternalError: two parts of Cranfield have one key.
    """
    found: dict[str, type[ProductBlock]] = {}
    for product in products():
        for key, place in product.config.items():
            if key in found or key in _CoreConfig.model_fields:
                raise InternalError(f"the key {key} of the config is defined twice: product {product.name}")
            try:
                found[key] = part(place)
            except UsageError as error:  # of an installed package: a config without its key is none the worse
                LOG.warning("the key %s of the config is not known: %s", key, error)
    return found


if TYPE_CHECKING:
    Config = _CoreConfig
else:
    Config = create_model(
        "Config",
        __base__=_CoreConfig,
        __doc__=_CoreConfig.__doc__,
        __module__=__name__,
        **{
            key: (OfRef[model | None], Field(default=None, description=model.about))
            for key, model in product_blocks().items()
        },
    )
