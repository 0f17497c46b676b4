"""What an error says, and how a caller's parameters are written in it."""

from cranfield.base.errors import Problem


def test_a_parameter_is_written_as_python_writes_it_and_as_a_command_line_does() -> None:
    problem = Problem("{number} is 0", expected="1 or {forge=github}", hint="or {repo}", parameters=("number", "forge"))
    assert str(problem) == "number is 0; expected 1 or forge=github.\nHint: or {repo}."

    def option(name: str, value: str) -> str:
        return f"--{name} {value}".strip()

    assert problem.sentence(option) == "--number is 0; expected 1 or --forge github."


def test_braces_that_name_no_parameter_stay() -> None:
    assert str(Problem("say {query id: {x: 1}}", got="{number}")) == "say {query id: {x: 1}}; got {number}."
