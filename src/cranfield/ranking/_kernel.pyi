# The C kernel, as its Python callers see it; the sources are in `kernel/`.

from collections.abc import Callable
from typing import final

from typing_extensions import Buffer

FINE: int
INTERLEAVED: int
STOPPED: int
COLUMNS: int
CARRIAGE_RETURN: int
SCORE: int
RANK: int
DUPLICATE: int
LONG_LINE: int

@final
class Index:
    def __new__(
        cls, query_ids: tuple[bytes, ...], doc_ids: tuple[tuple[bytes, ...], ...], whole: tuple[bool, ...]
    ) -> Index: ...

@final
class Scanner:
    def __new__(
        cls,
        index: Index,
        order: str,
        ties: str,
        duplicates: str,
        single: bool,
        depth: int,
        keep: int,
        gather: bool,
        inner: bool,
        problem_limit: int,
    ) -> Scanner: ...
    def feed(self, data: Buffer, /) -> int: ...
    def finish(self) -> int: ...
    def result(
        self,
    ) -> tuple[
        bytes,
        bytes,
        bytes,
        bytes,
        bytes,
        bytes,
        int,
        bytes | None,
        list[bytes],
        list[tuple[int, int, int, int, bytes, bytes]],
    ]: ...

def query_change(data: Buffer, /) -> int: ...
def rank_mappings(
    run: dict[str, dict[str, float]],
    query_ids: tuple[str, ...],
    judged: tuple[tuple[str, ...], ...],
    ties: str,
    single: bool,
    see: Callable[[int, int, bytes | None], object] | None = None,
    /,
) -> tuple[bytes, bytes, list[tuple[str, object, object]]]: ...
def rank_table(
    ids: Buffer,
    scores: Buffer | None,
    single: bool,
    width: int,
    starts: Buffer,
    judged: Buffer,
    drop: bool,
    /,
) -> tuple[bytes, bytes, bytes]: ...

@final
class Counter:
    def __new__(
        cls,
        query_offsets: Buffer,
        query_bytes: Buffer,
        doc_start: Buffer,
        doc_offsets: Buffer,
        doc_bytes: Buffer,
        ties: str,
        seed: bytes,
        met: Buffer,
    ) -> Counter: ...
    def queries(self, offsets: Buffer, data: Buffer, /) -> bytes: ...
    def document_order(self) -> bytes: ...
    def find(
        self, groups: Buffer, offsets: Buffer, data: Buffer, keys: Buffer, ordinal: int, /
    ) -> tuple[bytes, bytes]: ...
    def judge(
        self, start: Buffer, keys: Buffer, judgments: Buffer, ordinals: Buffer, counts: Buffer, suspects: Buffer, /
    ) -> None: ...
    def count(
        self, groups: Buffer, offsets: Buffer, data: Buffer, keys: Buffer, ordinal: int, delta: int, /
    ) -> bytes: ...
