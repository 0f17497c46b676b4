"""Names in narratives and queries: whichever way they are written, they are names; words of prose are not."""

import pytest

from cranfield.golden.index import leaks
from cranfield.golden.narrative import NamesAllowed, names_not_expected
from cranfield.golden.parsed import ParsedSource, module_parts
from cranfield.repo.snapshot import take

FILES = {
    "src/click/__init__.py": "from .core import Context as Context\n",
    "src/click/core.py": """class Context:
    def forward(self, command):
        return command

    def close(self):
        pass


def prompt(text, context=None):
    context.forward(text)
    return text


def read_file(path):
    return path
""",
    "src/click/shell_completion.py": "class ShellComplete:\n    pass\n\n\ndef split(line):\n    return line\n",
    "src/click/parser.py": "def normalize(option):\n    return option\n",
    "src/cart.rs": "pub struct Cart {}\n\nimpl Cart {\n    pub fn total(&self) -> u32 { 0 }\n}\n",
    "src/view.rs": """impl Display for View {
    fn fmt(&self) -> u32 { self.width() }
}

impl Debug for View {
    fn fmt(&self) -> u32 { 0 }
}

impl View {
    fn width(&self) -> u32 { 0 }
}
""",
    "docs/parser.md": "# Parser\n\nText.\n",
}
PROMPT, FORWARD = "src/click/core.py::prompt", "src/click/core.py::Context.forward"
COMPLETION = "src/click/shell_completion.py::split"


@pytest.fixture(scope="module")
def source(write_files):
    return ParsedSource(take(write_files(FILES)))


def named(narrative, source, expected=PROMPT):
    return names_not_expected(narrative, NamesAllowed([expected], [expected.partition("::")[0]], source))


@pytest.mark.parametrize(
    "token",
    [
        # modules
        "click.shell_completion",
        "click.shell_completion.ShellComplete",
        "click/shell_completion",
        "click/shell_completion.py",
        "src/click/shell_completion",
        "shell_completion",
        "click.parser",
        # a name with what it belongs to
        "Context::forward",
        "Context#forward",
        "Context.forward",
        "click.core.Context.forward",
        "click.Context.forward",
        "click.Context",
        "Cart::total",
        "cart::Cart::total",
        # other spellings
        "readFile",
        "read_file",
    ],
)
@pytest.mark.parametrize("form", ["It goes through {} then.", "It goes through `{}` then.", "({}), and so on", "{}"])
def test_a_name_is_found_in_prose_and_in_backticks(source, token, form):
    assert named(form.format(token), source) == [token]


@pytest.mark.parametrize(
    ("narrative", "found"),
    [
        ("It calls Context.forward(), then forward(command).", ["Context.forward", "forward"]),
        ("It calls `forward`.", ["forward"]),
        ("It lies in click\\shell_completion.py.", ["click/shell_completion.py"]),
        ("See :class:`~click.Context`.", ["click.Context"]),
        ("It is core.py::Context.forward.", ["Context.forward"]),  # of an expected file
        ("It calls `close()`.", ["close"]),
    ],
)
def test_a_name_is_found_in_the_forms_of_code(source, narrative, found):
    assert named(narrative, source) == found


@pytest.mark.parametrize(
    "narrative",
    [
        "In this context forward the value, and the context forward again.",
        "It may forward(s) it, one or more command(s), or be normalize(d).",
        "Read/write, input/output and/or src/else are e.g. words, i.e. prose.",
        "A shell completion, a shell-completion, a command-line option.",
        "It ends there.Forward is a word, as is Context.",
        "It calls close() on the stream, and split() of the text.",  # of built-in objects too
        "It calls `context.forward`.",  # a variable of the expected function
        "It is `prompt`, click.prompt, click.core.prompt or src/click/core.py, in the package click.",
        "It follows docs.python.org/3/library, version 8.1.x.",
    ],
)
def test_words_of_prose_and_what_is_expected_are_no_drops(source, narrative):
    assert named(narrative, source) == []


def test_an_instance_names_its_class_where_no_variable_is_called_so(source):
    assert named("It calls context.forward then.", source, COMPLETION) == ["context.forward"]


def test_a_package_that_holds_an_expected_file_may_be_named(source):
    assert named("It is a part of src.click.", source) == []
    assert named("It is a part of src.click.", source, "src/cart.rs::Cart.total") == ["src.click"]


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("src/click/core.py", ["src", "click", "core"]),
        ("src/click/__init__.py", ["src", "click"]),
        ("setup.py", ["setup"]),
        ("index.js", ["index"]),
    ],
)
def test_a_file_has_the_name_of_its_module(path, parts):
    assert module_parts(path) == parts


@pytest.mark.parametrize(
    ("entity", "query", "found"),
    [
        (COMPLETION, "What does click.shell_completion do?", ["shell_completion"]),
        (COMPLETION, "What does click/shell_completion.py do?", ["shell_completion.py"]),
        (COMPLETION, "What does click/shell_completion do?", ["shell_completion"]),
        ("src/click/parser.py::normalize", "What does click/parser do?", ["click/parser"]),
        ("src/click/parser.py::normalize", "What does click\\parser do?", ["click/parser"]),
        ("src/click/parser.py::normalize", "What does click.parser do?", ["parser"]),
        (FORWARD, "When is Context::forward called?", ["Context", "forward"]),
        (FORWARD, "When is Context#forward called?", ["Context", "forward"]),
        (FORWARD, "When is `forward` called?", ["forward"]),
        (FORWARD, "When is forward(command) called?", ["forward"]),
        (f"{FORWARD}#2", "When is Context.forward() called?", ["Context", "forward"]),
        (FORWARD, "How does the context forward a command?", []),
        (FORWARD, "Which context(s) forward(s) a command?", []),
        (COMPLETION, "How does shell completion split a line?", []),
        ("src/click/parser.py::normalize", "What is the parser/lexer of options?", []),
    ],
)
def test_a_query_gives_its_target_away_only_by_its_name(entity, query, found):
    assert leaks(query, [entity], []) == found


@pytest.mark.parametrize("token", ["`View::fmt`", "`fmt()`", "`View`", "`self.fmt()`"])
def test_a_method_of_several_traits_is_called_as_people_call_it(token, source):
    assert named(f"It calls {token} at the end.", source, "src/view.rs::<View as Debug>.fmt") == []


def test_other_methods_of_its_type_are_no_part_of_a_method_of_a_trait(source):
    assert named("It calls `View::width()`.", source, "src/view.rs::<View as Debug>.fmt") == ["View::width"]


def test_a_query_gives_a_method_of_a_trait_away_by_its_type_and_its_name():
    entity = "src/view.rs::<View as Debug>.fmt"
    assert leaks("why does `View` call fmt() twice?", [entity], ["src/view.rs"]) == ["View", "fmt"]


def test_a_short_name_of_several_methods_does_not_resolve_and_says_what_it_is_short_for(source):
    assert source.entity_problem("src/view.rs::View.fmt") == (
        "src/view.rs::View.fmt: the file has no such symbol; it has `src/view.rs::<View as Display>.fmt` and "
        "`src/view.rs::<View as Debug>.fmt`"
    )
    assert source.ranges("src/view.rs::<View as Debug>::fmt") == [(6, 6)]
