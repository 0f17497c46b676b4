"""Frozen values that all other packages use. Imports only `base`."""

from cranfield.model.absence import Absence
from cranfield.model.convention import CONVENTIONS, DEFAULT_CONVENTION, Convention, convention_named
from cranfield.model.judging import (
    EntityRole,
    Fact,
    Judging,
    JudgingAgreement,
    JudgingGuideline,
    JudgingOverruled,
    JudgingPool,
    JudgingRater,
    Label,
    Lines,
)
from cranfield.model.kinds import Scalar
from cranfield.model.matching import MatchingRules
from cranfield.model.note import Note, NoteKind
from cranfield.model.query import (
    LETTERS,
    QUERY_CLASSES,
    Negative,
    Query,
    QueryClass,
    class_named,
    is_in_stratum,
    query_strata,
)
from cranfield.model.query_ids import content_id
from cranfield.model.run import Answer, CallLog, Hit, Order, Outcome, Run
from cranfield.model.target import Credit, Entity, File, Legacy, Pattern, Predicate, PredicateRule, Source, Span, Target
from cranfield.model.testset import (
    Anchor,
    GroupedJudgment,
    Grouping,
    Meta,
    OtherJudgments,
    Rating,
    Split,
    TestSet,
    TestSetHead,
)

__all__ = [
    "CONVENTIONS",
    "DEFAULT_CONVENTION",
    "LETTERS",
    "QUERY_CLASSES",
    "Absence",
    "Anchor",
    "Answer",
    "CallLog",
    "Convention",
    "Credit",
    "Entity",
    "EntityRole",
    "Fact",
    "File",
    "GroupedJudgment",
    "Grouping",
    "Hit",
    "Judging",
    "JudgingAgreement",
    "JudgingGuideline",
    "JudgingOverruled",
    "JudgingPool",
    "JudgingRater",
    "Label",
    "Legacy",
    "Lines",
    "MatchingRules",
    "Meta",
    "Negative",
    "Note",
    "NoteKind",
    "Order",
    "OtherJudgments",
    "Outcome",
    "Pattern",
    "Predicate",
    "PredicateRule",
    "Query",
    "QueryClass",
    "Rating",
    "Run",
    "Scalar",
    "Source",
    "Span",
    "Split",
    "Target",
    "TestSet",
    "TestSetHead",
    "class_named",
    "content_id",
    "convention_named",
    "is_in_stratum",
    "query_strata",
]
