import copy
import json

import jsonschema
import pytest
import yaml

from cranfield.config.models import Config
from cranfield.config.schema import SCHEMA_FILE
from cranfield.formats.io.validation import published_schema, schema_text
from cranfield.workbench.config import Workbench
from cranfield.workbench.schema import WORKBENCH_FILE


@pytest.fixture(scope="module")
def validator():
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_published_schema_is_that_of_the_models():
    hint = "run python -m cranfield.config.schema"
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(published_schema(Config)), hint
    assert WORKBENCH_FILE.read_text(encoding="utf-8") == schema_text(published_schema(Workbench)), hint


def test_the_example_is_valid_by_the_schema(validator, example):
    validator.validate(yaml.safe_load(example))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(kk=1),
        lambda data: data.update(k=0),
        lambda data: data.pop("testset"),
        lambda data: data.update(testsets={"code": {"path": "code.yaml"}}),
        lambda data: data.update(systems={}),
        lambda data: data["systems"].update({"a b": data["systems"]["old"]}),
        lambda data: data["systems"]["old"].update(command=[]),
        lambda data: data["systems"]["old"].update(order="up"),
        lambda data: data["systems"]["old"]["extract"].update(json="r"),
        lambda data: data["systems"]["old"]["extract"].clear(),
        lambda data: data["systems"]["old"]["preflight"].append({}),
    ],
)
def test_the_schema_refuses_what_the_models_refuse(validator, example, change):
    data = copy.deepcopy(yaml.safe_load(example))
    change(data)
    assert not validator.is_valid(data)


@pytest.mark.parametrize(
    ("one", "valid"),
    [
        ({"path": "code.yaml"}, True),
        ({"path": "code.yaml", "params": {"mode": "code"}, "k": 5, "systems": ["old"]}, True),
        ({}, False),
        ({"path": "code.yaml", "params": {"1x": "code"}}, False),
        ({"path": "code.yaml", "systems": []}, False),
        ({"path": "code.yaml", "kk": 1}, False),
    ],
)
def test_several_test_sets_by_the_schema(validator, example, one, valid):
    data = yaml.safe_load(example)
    del data["testset"]
    data["testsets"] = {"code": one}
    assert validator.is_valid(data) is valid


@pytest.mark.parametrize("model", [Config, Workbench])
def test_every_field_says_what_it_is(model):
    schema = published_schema(model)
    objects = [schema, *schema["$defs"].values()]
    silent = [
        f"{part['title']}.{name}"
        for part in objects
        for name, field in part.get("properties", {}).items()
        if len(field.get("description", "")) < 10
    ]
    assert silent == []
    assert all(part.get("description") for part in objects)


def test_the_settings_of_evidence_checks_have_one_definition(validator, example):
    checks = published_schema(Config)["properties"]["evidence"]["properties"]
    assert {row["$ref"] for row in checks.values()} == {"#/$defs/EvidenceSetting"}
    data = yaml.safe_load(example)
    for setting, valid in (("off", True), (0.4, True), ({"threshold": 0.4}, True), ("never", False), ({"t": 1}, False)):
        assert validator.is_valid({**data, "evidence": {"duplicates": setting}}) is valid
    assert not validator.is_valid({**data, "evidence": {"duplicate": "off"}})


def test_the_schema_of_the_workbench():
    validator = jsonschema.Draft202012Validator(published_schema(Workbench))
    sources = [
        {"command": ["cat", "{id}"]},
        {"url": "https://x.test/{id}", "match": "a.*"},
        {"fields": {}, "template": "x"},
    ]
    validator.validate({"documents": sources, "images": {"hosts": ["x.test"]}, "cache_s": 0})
    for source in ({}, {"command": []}, {"fields": {}, "url": "https://x.test/{id}"}, {"fields": {"titel": "x"}}):
        assert not validator.is_valid({"documents": [source]})
