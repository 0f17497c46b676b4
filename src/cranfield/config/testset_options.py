"""The block `options` of a config: what is done to a test set before it is used. Its keys are options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.config.declared import with_keys
from cranfield.config.strict import Strict
from cranfield.options.blocks import SET_OPTIONS

if TYPE_CHECKING:
    _Keys = Strict
else:
    _Keys = with_keys(Strict, "SetKeys", SET_OPTIONS.values())


class SetOptions(_Keys):
    """What is done to a test set before it is used, as the options of `cranfield evaluate` do it."""

    @property
    def given(self) -> dict[str, Any]:
        """The options that the file gives, by key."""
        return {name: value for name in self.model_fields_set if (value := getattr(self, name)) is not None}

    def over(self, other: SetOptions) -> SetOptions:
        """These options, and those of the other block that are not given here."""
        return self.model_copy(update={name: value for name, value in other.given.items() if name not in self.given})
