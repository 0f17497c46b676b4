import pytest

from cranfield.config import SystemConfig, config_digest, public_config, system_config

WRITTEN = {
    "command": ["s", "{query}"],
    "env": {"TOKEN": "hunter2-token", "A": "x"},
    "extract": {"json": "r", "id": "uri", "fields": {"c": "m.c"}},
    "preflight": [{"file": "f", "equals_json": {"path": "a", "value": {"b": [1, None, True]}}}],
}


def system(**changes) -> SystemConfig:
    return system_config("sut", {**WRITTEN, **changes})


def test_the_public_config_is_what_was_written_with_names_for_secrets():
    assert public_config(system()) == {**WRITTEN, "env": ["A", "TOKEN"]}


def test_the_digest_does_not_depend_on_the_order_of_keys():
    turned = system_config("sut", {key: WRITTEN[key] for key in reversed(WRITTEN)})
    assert config_digest(turned) == config_digest(system())


def test_the_digest_is_fixed_for_all_time():
    # sha256 of 'cranfield system 1\n{"command":["s","{query}"],"extract":{"regex":"d"}}'
    plain = system_config("sut", {"command": ["s", "{query}"], "extract": {"regex": "d"}})
    assert config_digest(plain) == "sha256:bf9dd0092ba748dc041684c1ab7640c98e82a46e4c690824df8e670ea8b57460"


@pytest.mark.parametrize(
    "changes",
    [
        {"command": ["s", "{query}", "-v"]},
        {"env": {"TOKEN": "hunter3-token", "A": "x"}},
        {"env": {"TOKEN": "hunter2-token"}},
        {"extract": {"json": "r", "id": "url", "fields": {"c": "m.c"}}},
        {"preflight": []},
        {"cwd": "sub"},
        {"order": "given"},
        {"timeout_s": 30},
    ],
)
def test_any_change_of_what_is_written_changes_the_digest(changes):
    assert config_digest(system(**changes)) != config_digest(system())
