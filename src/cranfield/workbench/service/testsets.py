"""Named test sets: uploaded ones, and those of the operator's config, each kept as it was when it was used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.books.database.engine import Clock, Database
from cranfield.books.store.rows import checked_name
from cranfield.config import Config
from cranfield.workbench.service.responses import StoredSource
from cranfield.workbench.service.runs import pack_testset, unpack_refresh_dates, unpack_testset
from cranfield.workbench.service.store.testsets import StoredSets
from cranfield.workbench.service.values import SetInfo

if TYPE_CHECKING:
    from cranfield.model import Meta, TestSet


REFUSED = "@/"
"""Characters that no name of a test set has: `NAME@ID` is a version."""
OWN_FORMAT = "yaml"


class TestSets(StoredSets):
    """Test sets by name. `NAME` is the latest version, `NAME@ID` is one."""

    __test__ = False

    def __init__(self, database: Database, clock: Clock, config: Callable[[], Config | None]) -> None:
        super().__init__(database, clock)
        self._config = config
        self._unpacked = lru_cache(maxsize=4)(self._unpack)
        self._refresh_dates = lru_cache(maxsize=1_000)(lambda number: unpack_refresh_dates(self._content(number)))

    def keep(
        self,
        name: str,
        testset: TestSet,
        *,
        format_name: str = OWN_FORMAT,
        source: StoredSource = StoredSource.UPLOAD,
        by: int | None = None,
        after: int | None = None,
    ) -> SetInfo:
        """Store a test set under a name: a new version where there is one of this name, with other contents.

        Args:
            name: of it.
            testset: it.
            format_name: what it was read from.
            source: where it is from.
            by: who stores it.
            after: id of the version that it was made of, 0 where there was none: it is stored only where that is the latest.

        Raises:
            UsageError: not a name, or it is that of a test set of the config.
            ChangedMeanwhileError: another version is the latest.
        """
        name = checked_name(name, REFUSED)
        if name in self._of_config():
            raise UsageError(f"the config of the server has a test set {name}", path="name", hint="choose another name")
        return self._kept(name, testset, format_name, source, by, after)

    def latest(self, name: str) -> SetInfo | None:
        """The latest stored version of a name; None where there is none."""
        return next(iter(self._latest(name)), None)

    def names(self) -> tuple[SetInfo, ...]:
        """The latest version of each, by name; of a test set of the config that was not used yet, the name alone."""
        found = {info.name: info for info in self._latest()}
        unused = {name: _unused(name) for name in self._of_config() if name not in found}
        return tuple(sorted([*found.values(), *unused.values()], key=lambda info: info.name))

    def versions(self, name: str) -> tuple[SetInfo, ...]:
        """Every stored version of a name, the latest first.

        Raises:
            UnknownNameError: there is no test set of this name.
        """
        found = self._versions(name)
        if not found:
            self._require(name)
        return found

    def get(self, ref: str) -> SetInfo:
        """A version: `NAME@ID`; or the latest of a name. One of the config that was not used yet is read and stored now.

        Raises:
            UnknownNameError: there is no such test set, or no such version.
            InputError: a test set of the config, with all its problems.
        """
        name, at, number = ref.rpartition("@")
        if at and number.isascii() and number.isdecimal():
            info = self.by_id(int(number))
            if info.name != name:
                raise UnknownNameError(f"test set {name} has no version {number}")
            return info
        found = self._latest(ref)
        return found[0] if found else self.snapshot_of_config(ref)

    def check(self, ref: str) -> None:
        """Refuse a test set that is not there, without reading it.

        Raises:
            UnknownNameError: there is no such test set, or no such version.
        """
        if "@" in ref:
            self.get(ref)
        elif not self._latest(ref):
            self._require(ref)

    def load(self, ref: str) -> TestSet:
        """The test set of `get`, with its queries and judgments."""
        return self.load_id(self.get(ref).id or 0)

    def latest_of(self, digest: str) -> TestSet | None:
        """The latest version of the test set that was once this one; None where none was."""
        found = self._with_digest(digest)
        return None if found is None else self.load(found.name)

    def load_id(self, testset_id: int) -> TestSet:
        """A version by its number."""
        return self._unpacked(testset_id)

    def refresh_dates(self, testset_id: int) -> Meta:
        """When a version was made and how often it is to be refreshed; the rest of its metadata is left out."""
        return self._refresh_dates(testset_id)

    def snapshot_of_config(self, name: str) -> SetInfo:
        """Read a test set of the config as its files stand, and store it; the version that is there where nothing changed.

        Raises:
            UnknownNameError: the config has none of this name.
            InputError: the test set, with all its problems.
        """
        from cranfield.app.experiment import load_configured

        config = self._config()
        key = self._require(name)
        if config is None or key is None:
            raise UnknownNameError(f"test set {name} is not in the config of this server")
        testset = load_configured(config, key, allow_drift=False)
        return self._kept(name, testset, OWN_FORMAT, StoredSource.CONFIG, None)

    def config_key(self, name: str) -> str | None:
        """The name that a test set has in the config: empty for the only one without a name; None where it has none."""
        return self._of_config().get(name)

    def _kept(
        self,
        name: str,
        testset: TestSet,
        format_name: str,
        source: StoredSource,
        by: int | None,
        after: int | None = None,
    ) -> SetInfo:
        counts = (len(testset.queries), testset.n_judgments)
        info = _unused(name, testset.digest, testset.version[:200], source, format_name, *counts, by)
        return self._keep(info, pack_testset(testset), after)

    def _of_config(self) -> Mapping[str, str]:
        """Name of each test set of the config to its key there."""
        config = self._config()
        if config is None:
            return {}
        return {chosen.stored_name(key): key for key, chosen in config.sets.items()}

    def _require(self, name: str) -> str | None:
        """The key in the config.

        Raises:
            UnknownNameError: there is no test set of this name.
        """
        known = self._of_config()
        if name not in known:
            raise UnknownNameError.among("test set", name, {*known, *(info.name for info in self._latest())})
        return known[name]

    def _unpack(self, testset_id: int) -> TestSet:
        return unpack_testset(self._content(testset_id))


def _unused(
    name: str,
    digest: str = "",
    version: str = "",
    source: StoredSource = StoredSource.CONFIG,
    format_name: str = OWN_FORMAT,
    n_queries: int | None = None,
    n_judgments: int | None = None,
    account_id: int | None = None,
) -> SetInfo:
    """What is not stored yet."""
    return SetInfo(
        id=None,
        name=name,
        digest=digest,
        version=version,
        source=source,
        format=format_name,
        n_queries=n_queries,
        n_judgments=n_judgments,
        created_at=None,
        account_id=account_id,
        account="",
    )
