"""Results in MLflow, W&B and TensorBoard: a logger is a function `log(result, step=...)`, and each adapter returns one.

A result is anything with `to_dict()`: an evaluation or a comparison. Numbers become metrics. Texts, such as the verdict, the names and
what is undefined, become tags, strings or text summaries. Anything else takes a logger too: `def log(result, *, step=None)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Result(Protocol):
    """An evaluation or a comparison."""

    def to_dict(self) -> Mapping[str, float | int | str]:
        """Flat keys, each with a number or a text."""


class Log(Protocol):
    """A logger: called after every checkpoint, epoch or nightly run."""

    def __call__(self, result: Result, *, step: int | None = None) -> None:
        """Record a result, at a step of a training where there is one."""


def _parts(result: Result, prefix: str) -> tuple[dict[str, float], dict[str, str]]:
    """Numbers and texts, with the prefix before their keys."""
    values = {f"{prefix}{key}": value for key, value in result.to_dict().items()}
    numbers = {key: value for key, value in values.items() if not isinstance(value, str)}
    return numbers, {key: value for key, value in values.items() if isinstance(value, str)}


def to_mlflow(mlflow: Any, *, run_id: str | None = None, prefix: str = "") -> Log:
    """A logger to MLflow: numbers as metrics with their step, texts as tags, of which the last stays.

    Args:
        mlflow: the module.
        run_id: of the run; None: the active one.
        prefix: before every key, such as `valid/`.
    """

    def log(result: Result, *, step: int | None = None) -> None:
        numbers, texts = _parts(result, prefix)
        mlflow.log_metrics(numbers, step=step, run_id=run_id)
        if run_id is None:
            mlflow.set_tags(texts)
            return
        client = mlflow.MlflowClient()
        for key, text in texts.items():
            client.set_tag(run_id, key, text)

    return log


def to_wandb(run: Any, *, prefix: str = "") -> Log:
    """A logger to a run of W&B: numbers and texts in its history, in one row a step.

    Args:
        run: what `wandb.init` returned.
        prefix: before every key, such as `valid/`.
    """

    def log(result: Result, *, step: int | None = None) -> None:
        numbers, texts = _parts(result, prefix)
        run.log({**numbers, **texts}, step=step)

    return log


def to_tensorboard(writer: Any, *, prefix: str = "") -> Log:
    """A logger to TensorBoard: numbers as scalars, texts as text summaries.

    Args:
        writer: a `SummaryWriter` of PyTorch or tensorboardX, or another one with `add_scalar` and `add_text`.
        prefix: before every key, such as `valid/`.
    """

    def log(result: Result, *, step: int | None = None) -> None:
        numbers, texts = _parts(result, prefix)
        for key, number in numbers.items():
            writer.add_scalar(key, number, step)
        for key, text in texts.items():
            writer.add_text(key, text, step)

    return log
