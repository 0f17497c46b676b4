"""Keys of the judging page: one table, read by the page, its help, the check of a rater's settings and the documentation."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from cranfield.books.settings import Mode

if TYPE_CHECKING:
    from cranfield.books.store.accounts import AccountInfo


@dataclass(frozen=True, slots=True)
class KeyAction:
    """An action of the page and the key that starts it."""

    name: str
    key: str
    """A character can be changed by the rater; a named key as `ArrowLeft` cannot."""
    about: str
    other: str = ""
    """A named key that does the same."""
    repeats: bool = False
    """Whether it goes on while the key is down."""
    mode: Mode | None = None
    """None: in both modes."""


SYMBOLS = {"ArrowLeft": "←", "ArrowRight": "→", "ArrowDown": "↓"}
"""Named keys as they are shown."""
ACTIONS = (
    KeyAction("left", "ArrowLeft", "the left list is better", mode=Mode.PREFERENCE),
    KeyAction("right", "ArrowRight", "the right list is better", mode=Mode.PREFERENCE),
    KeyAction("tie", "ArrowDown", "tie: neither list is better", mode=Mode.PREFERENCE),
    KeyAction("next", "j", "next item, without grading", "ArrowRight", repeats=True),
    KeyAction("previous", "k", "previous item, without grading", "ArrowLeft", repeats=True),
    KeyAction("undo", "u", "undo"),
    KeyAction("skip", "s", "skip with a reason: 1 to 4"),
    KeyAction("later", "l", "judge later"),
    KeyAction("reason", "r", "write a reason; Enter or Esc leaves the field"),
    KeyAction("flag", "f", "flag, or remove the flag"),
    KeyAction("next_query", "n", "next query"),
    KeyAction("guidelines", "g", "show or hide the guidelines"),
    KeyAction("highlight", "h", "highlight the words of the query, or not"),
    KeyAction("layout", "v", "all documents of the query, or one at a time", mode=Mode.GRADE),
    KeyAction("open", "o", "open the source of the document", mode=Mode.GRADE),
    KeyAction("rest", "a", "give the rest of the query the lowest grade", mode=Mode.GRADE),
    KeyAction("add", "d", "add a document that no system returned", mode=Mode.GRADE),
    KeyAction("help", "?", "show the keys, and change them"),
)
"""In the order of the help."""


def key_actions(mode: Mode) -> list[dict[str, object]]:
    """The actions of a mode, for the page. With the arrows, two lists are chosen between; otherwise they move."""
    found = [action for action in ACTIONS if action.mode in {None, mode}]
    taken = {action.key for action in found}
    return [
        asdict(action)
        | {
            "other": "" if action.other in taken else action.other,
            "symbol": SYMBOLS.get(action.key, action.key.upper()),
            "other_symbol": "" if action.other in taken else SYMBOLS.get(action.other, action.other),
        }
        for action in found
    ]


OneKey = Annotated[str, StringConstraints(max_length=1, to_lower=True)]


class PageSettings(BaseModel):
    """Settings of a rater: keys and display."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool = True
    """Whether single keys do anything (WCAG 2.1.4)."""
    keys: dict[str, OneKey] = {}
    """Action to key, where it is another than the table's; empty: no key."""
    highlight: bool = True
    layout: Literal["card", "list"] = "card"

    @classmethod
    def of(cls, account: AccountInfo) -> Self:
        """What an account has stored."""
        return cls.model_validate(account.settings.get("judging", {}))

    @model_validator(mode="after")
    def _checked(self) -> Self:
        if unknown := self.keys.keys() - {action.name for action in ACTIONS}:
            raise ValueError(f"unknown action {min(unknown)!r}")
        for mode in Mode:
            used = Counter(self.keys.get(action.name, action.key) for action in ACTIONS if action.mode in {None, mode})
            twice = [key for key, times in used.items() if key and times > 1]
            if twice:
                raise ValueError(f"two actions use the key {twice[0]!r}")
        digits = [key for key in self.keys.values() if key.isdigit()]
        if digits:
            raise ValueError(f"{digits[0]!r} is a grade")
        return self
