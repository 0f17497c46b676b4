"""The block `options` of a config: what is done to a test set before it is used. Help and keys are those of one table."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from cranfield.config.strict import Strict
from cranfield.formats.io.validation import Text
from cranfield.formats.testsets.native_fields import CLOSED
from cranfield.model.testset_options import DEPTH, TESTSET_OPTIONS


def _described(name: str, *, file: bool = False) -> Any:
    """A field with the help of the command line; a path is relative to the config file."""
    text = DEPTH.help if name == "depth" else TESTSET_OPTIONS[name].help
    text = text.replace("; repeat for more", "; or a list of them").replace(": {parts}", "")
    return Field(description=f"{text} Relative to the config file." if file else text)


class SetOptions(Strict):
    """What is done to a test set before it is used, as the options of `cranfield evaluate` do it."""

    qrels: Annotated[Text | None, _described("qrels", file=True)] = None
    qrels_fallback: Annotated[bool, _described("qrels_fallback")] = False
    queries: Annotated[Text | None, _described("queries", file=True)] = None
    strata: Annotated[Text | list[Text] | None, _described("strata")] = None
    classes: Annotated[Text | None, _described("classes")] = None
    consensus: Annotated[Text | None, _described("consensus")] = None
    scale: Annotated[Text | None, _described("scale")] = None
    to_scale: Annotated[Text | None, _described("to_scale")] = None
    line_base: Annotated[Literal[0, 1] | None, _described("line_base")] = None
    min_overlap: Annotated[Annotated[int, Field(ge=1)] | None, _described("min_overlap")] = None
    ignore_identical_ids: Annotated[bool, _described("ignore_identical_ids")] = False
    databases: Annotated[Annotated[dict[str, str], Field(json_schema_extra=CLOSED)] | None, _described("databases")] = (
        None
    )
    intact: Annotated[bool, _described("intact")] = False
    part: Annotated[Literal["evaluated", "held-out"] | None, _described("part")] = None
    depth: Annotated[Annotated[int, Field(ge=1)] | None, _described("depth")] = None

    @property
    def given(self) -> dict[str, Any]:
        """The options that the file gives, by key."""
        return {name: value for name in self.model_fields_set if (value := getattr(self, name)) is not None}

    def over(self, other: SetOptions) -> SetOptions:
        """These options, and those of the other block that are not given here."""
        return self.model_copy(update={name: value for name, value in other.given.items() if name not in self.given})
