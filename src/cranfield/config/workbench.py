"""The operator's file, `workbench.yaml`: how the server runs, and where it reads the texts of documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field, PrivateAttr

from cranfield.config.documents import Images, Source, missing_files
from cranfield.config.intake import Intake
from cranfield.config.jobs import JobsConfig, LimitsConfig
from cranfield.config.load import null_characters, placed
from cranfield.config.metrics import MetricsConfig, Webhook
from cranfield.config.models import Config
from cranfield.config.server import ServerConfig
from cranfield.config.strict import Finding, Strict
from cranfield.config.tunable import Tunable
from cranfield.config.watch import BenefitWatch, Watches
from cranfield.errors import ConfigError, Problem, ProblemList, shorten
from cranfield.formats.io.files import shown
from cranfield.formats.io.located import load_located
from cranfield.formats.io.validation import validate


class Workbench(Strict):
    """The operator's file, `workbench.yaml`."""

    server: ServerConfig = Field(default_factory=ServerConfig)
    """How `cranfield serve` runs."""
    documents: list[Source] = Field(default_factory=list)
    """Sources of document texts, in order. A document that no source has is shown by the fields of the runs."""
    images: Images = Field(default_factory=Images)
    """Images; default: only those that are part of a record (`data:`)."""
    cache_s: Annotated[float, Field(ge=0, le=86_400)] = 600.0
    """Seconds that a text is kept before it is read again."""
    tunable: Tunable = Field(default_factory=dict)
    """System to parameters that leads may set on its page, each to a range or a list of values. All others are refused."""
    metrics: MetricsConfig = Field(default_factory=MetricsConfig)
    """Names of the Prometheus metrics, and who may read them."""
    webhooks: list[Webhook] = Field(default_factory=list)
    """Web servers that get a message when a job ends badly."""
    watch: Watches = Field(default_factory=dict)
    """Evaluations and experiments on a schedule, by name."""
    intake: Intake = Field(default_factory=Intake)
    """What is done to production queries before they are stored."""
    jobs: JobsConfig = Field(default_factory=JobsConfig)
    """How the server works on jobs."""
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    """Limits of uploads, requests and jobs."""

    _folder: Path = PrivateAttr(default_factory=Path)

    @property
    def folder(self) -> Path:
        """What paths are relative to: the folder of the file."""
        return self._folder

    def lie_in(self, folder: Path) -> None:
        """Set the folder of the file."""
        self._folder = folder

    def with_documents_of(self, config: Config | None) -> Workbench:
        """For reading texts: with the sources of a config, and its folder, where this has none."""
        if self.documents or config is None or not config.documents:
            return self
        found = self.model_copy(update={"documents": config.documents})
        found.lie_in(config.folder)
        return found


def load_workbench(path: Path | str) -> Workbench:
    """Read the operator's file.

    Raises:
        ConfigError: with everything that is wrong, in the order of the lines.
    """
    path = Path(path)
    if not path.exists():
        raise ConfigError("no such file", path=shown(path), hint="name another file, or write this one.")
    located = load_located(path, ConfigError)
    problems = ProblemList(ConfigError)
    config = validate(located, Workbench, problems, context=located.sourced)
    if config is not None:
        problems.problems += [placed(located, finding) for finding in null_characters(located.sourced)]
        if not problems.problems:
            problems.problems += [placed(located, finding) for finding in _missing(config, path.absolute().parent)]
    problems.raise_if_any()
    if config is None:
        raise ConfigError("not a workbench file", path=shown(path))
    config.lie_in(path.absolute().parent)
    return config


def _missing(config: Workbench, folder: Path) -> Iterator[Finding]:
    """Files and folders that are not there: of sources, and plans of experiments."""
    yield from missing_files(config.documents, folder)
    for schedule, watch in config.watch.items():
        if isinstance(watch, BenefitWatch) and not (folder / watch.benefit).is_file():
            yield ("watch", schedule, "benefit"), Problem("no such file", got=shorten(watch.benefit))
