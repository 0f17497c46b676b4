import asyncio
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from cranfield.base.errors import ConfigError, UnknownNameError
from cranfield.benefit.codecheck.registry import checker_for, current_symbol
from cranfield.benefit.codecheck.report import CheckReport, CheckState, CodeCheck, Target, packaged_deprecations
from cranfield.benefit.coding import CodingTask, load_coding_tasks

TASKS = """
cranfield_coding_tasks: 1
name: small
target: {language: python, version: 3.10, packages: {numpy: 2.1}}
tasks:
- id: sum
  prompt: Write a function total that adds the numbers of a list.
  writes: [main.py]
  strata: {task_type: write, difficulty: easy}
  tests: from main import total
  reference: {main.py: "def total(xs): return sum(xs)"}
- id: other
  prompt: The same for linux.
  writes: [main.py, lib/more.py]
  target: {platform: linux, version: "6.1"}
  strata: {task_type: write, difficulty: hard}
  criteria: [compiles]
"""


def read(folder: Path, text: str):
    (folder / "tasks.yaml").write_text(text, encoding="utf-8")
    return load_coding_tasks("tasks.yaml", folder)


def test_a_task_has_the_target_of_its_file_where_it_says_nothing_else(tmp_path: Path):
    first, second = read(tmp_path, TASKS).tasks
    assert first.runs_on == Target("python", "", "3.10", {"numpy": "2.1"})
    assert second.runs_on == Target("python", "linux", "6.1", {"numpy": "2.1"})


def test_the_criteria_are_four_checks_and_the_tests_that_there_are(tmp_path: Path):
    first, second = read(tmp_path, TASKS).tasks
    assert first.checks == (
        CodeCheck.COMPILES,
        CodeCheck.SYMBOLS,
        CodeCheck.AVAILABLE,
        CodeCheck.NOT_DEPRECATED,
        CodeCheck.TESTS,
    )
    assert second.checks == (CodeCheck.COMPILES,)


def test_the_prompt_names_the_target_and_the_files_and_nothing_of_the_tests(tmp_path: Path):
    first, second = read(tmp_path, TASKS).tasks
    assert first.full_prompt.splitlines()[2:] == [
        "Language: python. It must run on python 3.10, without deprecated calls.",
        "Packages besides the standard library: numpy 2.1.",
        "Write: main.py.",
    ]
    assert "It must run on linux 6.1" in second.full_prompt
    assert "from main import total" not in first.full_prompt


def test_the_digest_is_of_what_a_file_says(tmp_path: Path):
    assert read(tmp_path, TASKS).digest == read(tmp_path, TASKS + "# a comment\n").digest
    assert read(tmp_path, TASKS).digest != read(tmp_path, TASKS.replace("adds", "multiplies")).digest


def test_everything_that_does_not_fit_is_reported_at_its_line(tmp_path: Path):
    text = (
        TASKS.replace("language: python, ", "")
        .replace("id: other", "id: sum")
        .replace("criteria: [compiles]", "criteria: [tests]")
    )
    text = text.replace("{main.py: ", "{a.py: ").replace(", difficulty: hard}", "}")
    text += "  traps:\n  - {fails: symbols, files: {main.py: pass}}\nverified: false\n"
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, text)
    assert [(problem.line, problem.message) for problem in raised.value.problems] == [
        (4, "`target` has no language"),
        (11, "task sum: the reference lacks main.py"),
        (12, "task sum occurs twice"),
        (16, "task sum: strata differ from those of the first task"),
        (17, "task sum: its criteria include tests, but it has none"),
        (19, "task sum: a trap fails symbols, which is not a criterion of the task"),
        (20, "`verified: false` requires `unverified_reason`"),
    ]


@pytest.mark.parametrize("path", ["/etc/x.py", "../x.py", "a/../../x.py", "a\\b.py", "."])
def test_a_file_of_an_answer_lies_in_its_folder(tmp_path: Path, path: str):
    with pytest.raises(ConfigError, match="path within the folder of the answer"):
        read(tmp_path, TASKS.replace("writes: [main.py]", f"writes: ['{path}']"))


def test_a_list_whose_only_entry_does_not_fit_is_not_called_empty(tmp_path: Path):
    one, wrong = TASKS.partition("- id: other")[0], ("prompt:", "promt:")
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, one.replace(*wrong))
    assert [each.message for each in caught.value.problems] == [
        "missing key 'prompt' in tasks[0]",
        "unknown key 'promt'",
    ]
    with pytest.raises(ConfigError, match="tasks is empty"):
        read(tmp_path, one.partition("\ntasks:")[0] + "\ntasks: []")


def test_an_unknown_file_of_the_package_is_refused(tmp_path: Path):
    with pytest.raises(UnknownNameError, match="unknown file of coding tasks 'cobol'") as caught:
        load_coding_tasks("package:cobol", tmp_path)
    assert caught.value.problems[0].expected == "python, swift"


PYTHON = load_coding_tasks("package:python", Path()).tasks


def test_thirty_tasks_of_python_ship_each_with_a_reference_and_a_trap():
    assert len(PYTHON) == 30
    assert all(task.reference and task.tests and task.traps and task.source for task in PYTHON)
    assert Counter(task.strata["task_type"] for task in PYTHON) == {"migrate": 12, "version": 11, "write": 7}
    assert {trap.fails for task in PYTHON for trap in task.traps} == set(CodeCheck)


def test_no_prompt_names_what_the_reference_calls_or_the_trap_invents():
    named = [task.id for task in PYTHON for trap in task.traps if trap.symbol and f"`{trap.symbol}`" in task.prompt]
    assert named == []


def test_five_tasks_of_swift_ship_and_say_that_no_compiler_has_checked_them():
    read = load_coding_tasks("package:swift", Path())
    assert (len(read.tasks), read.verified) == (5, False)
    assert "No Swift compiler" in read.unverified_reason
    entries = packaged_deprecations("swift").entries
    for task in read.tasks:
        for trap in task.traps:
            is_in_map = bool(current_symbol(entries, trap.symbol, task.runs_on))
            assert is_in_map == (trap.fails is CodeCheck.NOT_DEPRECATED), task.id


def check(task: CodingTask, files: Mapping[str, str], tests: str = "") -> CheckReport:
    return asyncio.run(checker_for(task.runs_on, {}).check(files, task.runs_on, tests))


@pytest.mark.parametrize("task", [pytest.param(task, id=task.id) for task in PYTHON])
@pytest.mark.slow  # 90 runs of the type checker, and as many of the tests
def test_a_reference_passes_every_check_and_a_trap_fails_the_one_that_it_names(task: CodingTask):
    reference = check(task, task.reference, task.tests)
    left = set() if shutil.which("bwrap") else {CodeCheck.TESTS}
    open_checks = {check for check, state in reference.states.items() if state is not CheckState.PASSED}
    assert open_checks <= left, (reference.findings, reference.notes)
    if shutil.which("bwrap"):
        idle = check(task, dict.fromkeys(task.writes, "pass\n"), task.tests)
        assert idle.states[CodeCheck.TESTS] is CheckState.FAILED
    for trap in task.traps:
        found = check(task, trap.files, task.tests if trap.fails is CodeCheck.TESTS else "").findings
        is_found = any(each.check is trap.fails and trap.symbol in each.symbol for each in found)
        assert is_found or (trap.fails is CodeCheck.TESTS and not shutil.which("bwrap")), found


LOCK = "numpy==2.3.5 --hash=sha256:aa\npandas==2.3.0\n"


def test_requirements_of_a_file_or_of_lines_are_read_with_the_tasks(tmp_path: Path):
    (tmp_path / "requirements.txt").write_text(LOCK, encoding="utf-8")
    text = TASKS.replace("packages: {numpy: 2.1}", "requirements: requirements.txt")
    text = text.replace("target: {platform: linux,", "target: {requirements: [attrs>=25], platform: linux,")
    first, second = read(tmp_path, text).tasks
    assert first.runs_on.requirements == ("numpy==2.3.5 --hash=sha256:aa", "pandas==2.3.0")
    assert second.runs_on.requirements == ("attrs>=25",)
    assert "Packages besides the standard library: numpy 2.3.5, pandas 2.3.0." in first.full_prompt
    assert "Packages besides the standard library: attrs>=25." in second.full_prompt
    digest = read(tmp_path, text).digest
    (tmp_path / "requirements.txt").write_text(LOCK.replace("2.3.5", "2.3.4"), encoding="utf-8")
    assert read(tmp_path, text).digest != digest


def test_an_environment_is_one_beside_the_tasks_and_its_packages_are_named(tmp_path: Path):
    text = TASKS.replace("packages: {", "environment: ../venv/bin/python, packages: {")
    (tmp_path / "tasks").mkdir()
    first, _ = read(tmp_path / "tasks", text).tasks
    assert Path(first.runs_on.environment) == tmp_path.resolve() / "tasks" / ".." / "venv" / "bin" / "python"
    assert "numpy 2.1" in first.full_prompt


def test_packages_that_cannot_be_read_are_problems_at_their_lines(tmp_path: Path):
    (tmp_path / "requirements.txt").write_text("-e .\n", encoding="utf-8")
    text = TASKS.replace("packages: {numpy: 2.1}", "environment: venv, requirements: [-r other.txt, numpy]")
    text = text.replace("target: {platform: linux,", "target: {requirements: requirements.txt, platform: linux,")
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, text)
    found = [(Path(problem.path or "").name, problem.line, problem.message[:22]) for problem in raised.value.problems]
    assert found == [
        ("requirements.txt", 1, "this option is not sup"),
        ("tasks.yaml", 4, "`environment` without "),
        ("tasks.yaml", 4, "give either `environme"),
        ("tasks.yaml", 4, "the file refers to ano"),
    ]


def test_a_prompt_names_no_more_packages_than_a_reader_can_take_in(tmp_path: Path):
    lines = "".join(f"package{number:03}==1\n" for number in range(100))
    (tmp_path / "requirements.txt").write_text(lines, encoding="utf-8")
    text = TASKS.replace("packages: {numpy: 2.1}", "requirements: requirements.txt")
    (tmp_path / "tasks.yaml").write_text(text, encoding="utf-8")
    prompt = load_coding_tasks("tasks.yaml", tmp_path).tasks[0].full_prompt
    assert "package039 1" in prompt
    assert "package040" not in prompt
    assert "60 more" in prompt
