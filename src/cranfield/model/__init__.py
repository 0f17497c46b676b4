"""Frozen values that every other room speaks in. Imports nothing of ours but the errors."""

from cranfield.model.convention import CONVENTIONS, DEFAULT_CONVENTION, Convention, convention_named
from cranfield.model.query import Query, Scalar
from cranfield.model.run import Answer, CallLog, Hit, Order, Outcome, Run
from cranfield.model.testset import Credit, GroupedJudgment, Grouping, Pattern, TestSet

__all__ = [
    "CONVENTIONS",
    "DEFAULT_CONVENTION",
    "Answer",
    "CallLog",
    "Convention",
    "Credit",
    "GroupedJudgment",
    "Grouping",
    "Hit",
    "Order",
    "Outcome",
    "Pattern",
    "Query",
    "Run",
    "Scalar",
    "TestSet",
    "convention_named",
]
