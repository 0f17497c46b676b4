"""Every option is declared once: what the declarations give to Python, to a config, and to requests."""

from __future__ import annotations

from dataclasses import MISSING, fields
from inspect import Parameter, signature
from typing import Any, get_args

import pytest

from cranfield import compare, compare_many, evaluate
from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.config.models import Config, SetConfig
from cranfield.evaluation.options.blocks import (
    CollectOptions,
    CompareOptions,
    LatencyRule,
    Limits,
    ScoringOptions,
    TestSetOptions,
)
from cranfield.evaluation.options.declaration import declared
from cranfield.model.results import from_jsonable, to_jsonable
from cranfield.workbench.service.requests import CompareRequest
from cranfield.workbench.watch_config import Compare

BLOCKS = (TestSetOptions, ScoringOptions, CompareOptions, CollectOptions, Limits, LatencyRule)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_defaults_of_a_block_are_allowed_and_no_field_is_given_by_position(block: type) -> None:
    for option in declared(block).values():
        assert option.problem(option.default) is None
        assert option.option.help.endswith(".")
    assert all(
        field.kw_only and (field.default, field.default_factory) != (MISSING, MISSING) for field in fields(block)
    )


@pytest.mark.parametrize(
    ("block", "values", "said"),
    [
        (CompareOptions, {"alpha": 1}, "alpha is 1; expected a number between 0 and 1"),
        (CompareOptions, {"alpha": float("nan")}, "alpha is nan"),
        (CompareOptions, {"draws": 2.5}, "draws is 2.5; expected a whole number of 2 or more"),
        (CompareOptions, {"margin": 0}, "margin is 0; expected a number above 0"),
        (CompareOptions, {"seed": True}, "seed is True"),
        (CollectOptions, {"repeats": 101}, "repeats is 101; expected a whole number from 1 to 100"),
        (Limits, {"max_failed_share": 1.5}, "max_failed_share is 1.5; expected a number from 0 to 1"),
        (TestSetOptions, {"line_base": 2}, "line_base is 2; expected 0 or 1"),
        (ScoringOptions, {"missing": "zerro"}, "did you mean zero"),
    ],
)
def test_a_value_that_the_declaration_does_not_allow_is_refused(block: type, values: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        block(**values)
    assert said in str(caught.value)


def test_everything_that_is_wrong_is_reported_at_once_and_spelled_as_the_caller_writes_it() -> None:
    with pytest.raises(UsageError) as caught:
        CompareOptions(alpha=3, draws=1, test="tt")
    assert len(caught.value.problems) == 3
    alpha = next(problem for problem in caught.value.problems if "alpha" in problem.parameters)
    assert alpha.sentence(lambda name, _: f"--{name}").startswith("--alpha is 3;")
    with pytest.raises(UnknownNameError, match="unknown convention 'treck'"):
        ScoringOptions(convention="treck")


@pytest.mark.parametrize(
    ("model", "block", "names"),
    [
        (Config, CompareOptions, ("test", "alpha", "margin", "draws", "verdict", "strata", "adjust")),
        (SetConfig, CompareOptions, ("verdict", "strata")),
        (Compare, CompareOptions, ("test", "alpha", "margin")),
        (CompareRequest, CompareOptions, ("test", "alpha", "margin", "strata")),
    ],
)
def test_a_key_has_the_type_and_the_help_of_its_option(model: Any, block: type, names: tuple[str, ...]) -> None:
    for name in names:
        field, option = model.model_fields[name], declared(block)[name]
        start = option.option.help.partition(";")[0].partition(": {")[0].rstrip(".")
        assert (field.description or "").startswith(start)
        if option.bare is float:
            assert float in {field.annotation, *get_args(field.annotation)} or "float" in str(field.annotation)


@pytest.mark.parametrize("block", BLOCKS[1:])
def test_a_block_is_read_back_from_its_json(block: type) -> None:
    given: dict[type, Any] = {Limits: {"evidence": {"same-list": "off", "one-id": 0.4}}, ScoringOptions: {"depth": 3}}
    made = block(**given.get(block, {}))
    assert from_jsonable(block, to_jsonable(made)) == made


@pytest.mark.parametrize(
    ("function", "block", "without"),
    [
        (evaluate, ScoringOptions, {"keep_undefined"}),  # set by the program
        (compare, CompareOptions, {"adjust"}),  # of three systems or more
        (compare_many, CompareOptions, {"verdict", "strata"}),  # of two systems
    ],
)
def test_a_function_has_a_keyword_for_each_option_with_its_default(
    function: Any, block: type, without: set[str]
) -> None:
    keywords = signature(function).parameters
    assert {field.name for field in fields(block)} - without <= keywords.keys()
    for name in declared(block).keys() - without:
        assert keywords[name].kind is Parameter.KEYWORD_ONLY
        assert keywords[name].default in (declared(block)[name].default, None), name
