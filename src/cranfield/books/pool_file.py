"""A pool as a file: queries, documents to judge, and how they were chosen."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

PoolMethod = Literal["depth", "stratified", "budget", "holes", "traces"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PooledRun(_Record):
    """A run whose results are in the pool."""

    name: str
    digest: str


class PooledQuery(_Record):
    """A query as a rater sees it."""

    id: str
    text: str
    need: str = ""
    """The information need: what a good result must answer."""
    notes: str = ""
    strata: dict[str, str] = {}


class PooledItem(_Record):
    """A document of a query."""

    query: str
    doc: str
    fields: dict[str, object] = {}
    """What the runs say of it: `title`, `text`, `url`, `image`, ..."""
    runs: dict[str, int] = {}
    """Run to rank. Never shown to a rater before the item is graded."""
    stratum: str = ""
    """Stratum of ranks that it was sampled from: `1-10`, `11-50`."""
    inclusion: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Probability with which it was sampled."""
    judged: float | None = None
    """Grade that the test set has already, carried over; None: to be judged."""
    prefilled: float | None = None
    """Grade that a pattern, span, entity or predicate of the test set gives it, by the rater `rule`."""
    effect: float | None = None
    """For a pool of holes: the largest change of the mean difference that its judgment alone can make."""

    @property
    def is_open(self) -> bool:
        """Whether a person is still to judge it."""
        return self.judged is None and self.prefilled is None


class PoolHead(_Record):
    """What a pool is, without its queries and documents."""

    cranfield_pool: Literal[1] = 1
    name: str
    method: PoolMethod
    depth: Annotated[int, Field(ge=1)]
    complete_to: Annotated[int, Field(ge=0)] = 0
    """Rank down to which every result of every run is in the pool or was judged before: less than the depth for a budget."""
    n_left_out: Annotated[int, Field(ge=0)] = 0
    """Results of the runs that the test set has judged, and that are left out."""
    seed: int = 0
    testset: str = ""
    """Name of the test set."""
    testset_digest: str = ""
    testset_file: str = ""
    """File of the test set, from the folder of the command that made the pool."""
    queries_file: str = ""
    """File of the texts of its queries, where it has none."""
    n_earlier: Annotated[int, Field(ge=0)] = 0
    """Judgments and targets of the test set, whatever the pool left out of them: a frozen book keeps them."""
    scale: tuple[float, ...] = ()
    """Grades of the test set, where it declares them or has grades over 3."""
    runs: tuple[PooledRun, ...]

    @property
    def head(self) -> PoolHead:
        """The same, of a whole pool."""
        return PoolHead.model_construct(**{name: getattr(self, name) for name in PoolHead.model_fields})


class Pool(PoolHead):
    """Documents to judge, in the order of queries; within a query in the order of `doc`, which says nothing of rank."""

    queries: tuple[PooledQuery, ...]
    items: tuple[PooledItem, ...]
