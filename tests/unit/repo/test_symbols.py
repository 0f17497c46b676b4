"""The symbols of each language, on snippets as they are written."""

from __future__ import annotations

import sys
import time
from textwrap import dedent

import pytest

from cranfield.base.errors import MissingExtraError
from cranfield.ranking.matching.place import parts_of, plain_name
from cranfield.repo import grammar
from cranfield.repo.symbols import outline_of

PYTHON = """
import os

LIMIT: int = 1
ONE = TWO = 2


@cache(
    maxsize=1,
)
async def fetch():
    def inner():
        local = 1
    return inner


class Index:
    size = 0

    @property
    def name(self):
        return 1

    @name.setter
    def name(self, value): ...

    class Entry:
        def key(self): ...


if os.name == "nt":

    def path(): ...

else:

    def path(): ...


try:
    import fast
except ImportError:
    fast = None
match os.name:
    case "nt":
        def matched(): ...
"""
PYTHON_SYMBOLS = [
    ("LIMIT", "variable", 4, 4),
    ("ONE", "variable", 5, 5),
    ("TWO", "variable", 5, 5),
    ("fetch", "function", 8, 14),
    ("fetch.inner", "function", 12, 13),
    ("Index", "class", 17, 28),
    ("Index.size", "variable", 18, 18),
    ("Index.name", "method", 20, 22),
    ("Index.name#2", "method", 24, 25),
    ("Index.Entry", "class", 27, 28),
    ("Index.Entry.key", "method", 28, 28),
    ("path", "function", 33, 33),
    ("path#2", "function", 37, 37),
    ("fast", "variable", 43, 43),
    ("matched", "function", 46, 46),
]
RUST = """
#[derive(Debug)]
#[repr(C)]
pub struct Index<T> {
    items: Vec<T>,
}

impl<T: Clone> store::Store<T> for crate::Index<T> {
    #[inline]
    fn add(&mut self, item: T) {
        fn grow() {}
    }
}

mod inner {
    pub fn top() {}
    impl super::Index<u8> {
        fn bytes(&self) {}
    }
}

pub trait Store<T> {
    fn add(&mut self, item: T);
    fn len(&self) -> usize { 0 }
}

pub enum Kind { A }
const LIMIT: u8 = 1;
macro_rules! say { () => {} }
"""
RUST_SYMBOLS = [
    ("Index", "struct", 2, 6),
    ("Index.add", "method", 9, 12),
    ("Index.add.grow", "function", 11, 11),
    ("inner", "module", 15, 20),
    ("inner.top", "function", 16, 16),
    ("inner.Index.bytes", "method", 18, 18),
    ("Store", "trait", 22, 25),
    ("Store.add", "method", 23, 23),
    ("Store.len", "method", 24, 24),
    ("Kind", "enum", 27, 27),
    ("LIMIT", "variable", 28, 28),
    ("say", "macro", 29, 29),
]
GO = """
package store

type (
	Index[T any] struct {
		items []T
	}
	Key = string
)

type Store interface {
	Add(item int)
}

func (index *Index[T]) Add(item T) {
	index.items = append(index.items, item)
}

func (Index[T]) Len() int { return 0 }

func Open() *Index[int] { return nil }
"""
GO_SYMBOLS = [
    ("Index", "type", 5, 7),
    ("Key", "type", 8, 8),
    ("Store", "type", 11, 13),
    ("Index.Add", "method", 15, 17),
    ("Index.Len", "method", 19, 19),
    ("Open", "function", 21, 21),
]
JAVA = """
package store;

@Service
public class Index<T> extends Base {
    Index() {}

    @Override
    public void add(T item) {
        run(new Runnable() { public void run() {} });
    }

    void add(T item, int at) {}

    enum Kind { A }
    record Entry(int key) { Entry { } }
    interface Store { void open(); }
}
"""
JAVA_SYMBOLS = [
    ("Index", "class", 4, 18),
    ("Index.Index", "method", 6, 6),
    ("Index.add", "method", 8, 11),
    ("Index.add.run", "method", 10, 10),
    ("Index.add#2", "method", 13, 13),
    ("Index.Kind", "enum", 15, 15),
    ("Index.Entry", "class", 16, 16),
    ("Index.Entry.Entry", "method", 16, 16),
    ("Index.Store", "interface", 17, 17),
    ("Index.Store.open", "method", 17, 17),
]
JAVASCRIPT = """
exports.open = function () {};
Index.prototype.add = (item) => item;
export default class Index extends Base {
  size = () => 1;
  static #hidden() {}
  get name() { return 1; }
}
export const load = async () => {
  const step = () => 1;
};
const a = () => 1, b = () => 2;
function* all() {}
var plain = 1;
"""
JAVASCRIPT_SYMBOLS = [
    ("open", "function", 2, 2),
    ("Index.add", "function", 3, 3),
    ("Index", "class", 4, 8),
    ("Index.size", "method", 5, 5),
    ("Index.#hidden", "method", 6, 6),
    ("Index.name", "method", 7, 7),
    ("load", "function", 9, 11),
    ("load.step", "function", 10, 10),
    ("a", "function", 12, 12),
    ("b", "function", 12, 12),
    ("all", "function", 13, 13),
]
TYPESCRIPT = """
@Injectable()
export abstract class Index {
  @log() add(item: string): void {}
  abstract close(): void;
}
export interface Store { open(): void }
type Key = string;
enum Kind { A }
namespace Deep { export function down(): void {} }
declare module "outside" { function far(): void }
function over(a: string): void;
function over(a: any) {}
"""
TYPESCRIPT_SYMBOLS = [
    ("Index", "class", 2, 6),
    ("Index.add", "method", 4, 4),
    ("Index.close", "method", 5, 5),
    ("Store", "interface", 7, 7),
    ("Key", "type", 8, 8),
    ("Kind", "enum", 9, 9),
    ("Deep", "module", 10, 10),
    ("Deep.down", "function", 10, 10),
    ("outside", "module", 11, 11),
    ("outside.far", "function", 11, 11),
    ("over", "function", 12, 12),
    ("over#2", "function", 13, 13),
]
TSX = """
export const App = () => <p onClick={() => 1}>hello</p>;
function Page() {
  return <App />;
}
"""
TSX_SYMBOLS = [("App", "function", 2, 2), ("Page", "function", 3, 5)]
C = """
#define MAX(a, b) ((a) > (b) ? (a) : (b))
typedef struct { int size; } Index;
typedef int (*callback)(int);
struct entry { int key; };
enum kind { A };
int add(struct entry *item);
static struct entry *
find(int key) {
    struct entry *item;
    return item;
}
int (*pointer)(int);
int old(a) int a; { return a; }
"""
C_SYMBOLS = [
    ("MAX", "macro", 2, 2),
    ("Index", "type", 3, 3),
    ("callback", "type", 4, 4),
    ("entry", "struct", 5, 5),
    ("kind", "enum", 6, 6),
    ("add", "function", 7, 7),
    ("find", "function", 8, 12),
    ("old", "function", 14, 14),
]
CPP = """
namespace store::fast {
template <class T>
class Index {
    Index();
    ~Index();
    void add(T item);
    int size() const { return 1; }
    T &operator[](int at);
    void (*hook)(int);
};
}
template <>
void store::fast::Index<int>::add(int item) {}
bool operator==(A a, B b) { return true; }
int &first(int &a) { return a; }
namespace { void hidden() {} }
Index::Index(int size) : size_(size) {}
int numbers[3];
"""
CPP_SYMBOLS = [
    ("store.fast", "module", 2, 12),
    ("store.fast.Index", "class", 3, 11),
    ("store.fast.Index.Index", "method", 5, 5),
    ("store.fast.Index.~Index", "method", 6, 6),
    ("store.fast.Index.add", "method", 7, 7),
    ("store.fast.Index.size", "method", 8, 8),
    ("store.fast.Index.operator[]", "method", 9, 9),
    ("store.fast.Index.add#2", "method", 13, 14),
    ("operator==", "function", 15, 15),
    ("first", "function", 16, 16),
    ("hidden", "function", 17, 17),
    ("Index.Index", "method", 18, 18),
]
MARKDOWN = """
---
title: Guide
---
# Guide

Words.

## Install ##

```sh
# not a heading
```

~~~
## nor this
```
~~~

### Linux
apt

### Mac
brew


Two lines
of title
========

text

---
- item
---

    # code

#hashtag
## Install
"""
MARKDOWN_SYMBOLS = [
    ("Guide", "section", 4, 23),
    ("Guide > Install", "section", 8, 23),
    ("Guide > Install > Linux", "section", 19, 20),
    ("Guide > Install > Mac", "section", 22, 23),
    ("Two lines of title", "section", 26, 39),
    ("Two lines of title > Install", "section", 39, 39),
]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.py", PYTHON, PYTHON_SYMBOLS),
        ("src/index.rs", RUST, RUST_SYMBOLS),
        ("index.go", GO, GO_SYMBOLS),
        ("Index.java", JAVA, JAVA_SYMBOLS),
        ("index.mjs", JAVASCRIPT, JAVASCRIPT_SYMBOLS),
        ("index.ts", TYPESCRIPT, TYPESCRIPT_SYMBOLS),
        ("App.tsx", TSX, TSX_SYMBOLS),
        ("index.c", C, C_SYMBOLS),
        ("index.cpp", CPP, CPP_SYMBOLS),
        ("index.h", CPP, CPP_SYMBOLS),
        ("docs/guide.md", MARKDOWN.lstrip("\n"), MARKDOWN_SYMBOLS),
    ],
    ids=["python", "rust", "go", "java", "javascript", "typescript", "tsx", "c", "cpp", "cpp-header", "markdown"],
)
def test_symbols_with_their_lines(path: str, text: str, expected: list[tuple[str, str, int, int]]) -> None:
    outline = outline_of(path, text)
    assert outline.trouble == ""
    assert [(s.id.removeprefix(f"{path}::"), s.kind, s.start, s.end) for s in outline.symbols[1:]] == expected


@pytest.mark.parametrize("path", ["a.rb", "a.txt", "Makefile", "a.rst"])
def test_a_file_of_any_other_kind_is_one_symbol(path: str) -> None:
    (whole,) = outline_of(path, "one\ntwo\n\n").symbols
    assert (whole.id, whole.kind, whole.start, whole.end) == (path, "file", 1, 2)


def test_an_empty_file_is_a_symbol_too() -> None:
    assert [symbol.id for symbol in outline_of("a.py", "").symbols] == ["a.py"]


@pytest.mark.parametrize(
    ("path", "text", "trouble"),
    [
        ("a.py", "x = 1\ndef f(:\n", "line 2: invalid syntax"),
        ("a.go", "package a\n\nfunc {{{\n", "line 3: not understood"),
    ],
    ids=["python", "go"],
)
def test_a_file_that_does_not_parse_says_where(path: str, text: str, trouble: str) -> None:
    assert outline_of(path, text).trouble == trouble


def test_a_null_in_a_file_is_trouble_and_no_crash() -> None:
    assert outline_of("a.py", "x = '\0'\n").trouble.endswith("source code string cannot contain null bytes")


def test_what_a_grammar_understands_beside_its_trouble_is_kept() -> None:
    outline = outline_of("a.rs", "fn good() {}\nfn bad( {\n")
    assert outline.trouble
    assert "a.rs::good" in [symbol.id for symbol in outline.symbols]


def test_code_nested_deeper_than_python_calls_is_read() -> None:
    deep = 400
    text = "".join(f"{' ' * n}class C{n}:\n" for n in range(90)) + " " * 90 + "x = 1\n"
    assert len(outline_of("a.py", text).symbols) == 1 + 90 + 1
    assert outline_of("a.py", "x = " + "(" * deep + ")" * deep).trouble
    nested = "function f(){" * 3000 + "}" * 3000
    assert len(outline_of("a.js", nested).symbols) == 3001


def test_bytes_that_are_not_utf_8_do_not_shift_anything() -> None:
    found = outline_of("a.py", "x = '\udce4'\ndef f(): ...\n").symbols
    assert [(symbol.id, symbol.start) for symbol in found[1:]] == [("a.py::x", 1), ("a.py::f", 2)]


@pytest.mark.parametrize(
    ("path", "text", "entities"),
    [
        (
            "a.rs",
            """
            impl Display for A { fn fmt() {} }
            impl fmt::Debug for A { fn fmt() { fn pad() {} } }
            impl From<io::Error> for E { fn from() {} }
            impl From<fmt::Error> for E { fn from() {} }
            impl A { fn new() {} }
            impl Default for A { fn new() {} }
            impl IntoIterator for A { fn into_iter() {} }
            impl<'a> IntoIterator for &'a mut A { fn into_iter() {} }
            impl B<u8> { fn get() {} }
            impl B<u16> { fn get() {} }
            impl Store for A { fn add() {} }
            #[cfg(unix)]
            impl A { fn path() {} }
            #[cfg(windows)]
            impl A { fn path() {} }
            """,
            {
                "<A as Display>.fmt": 1,
                "<A as fmt.Debug>.fmt": 1,
                "A.fmt.pad": 1,
                "<E as From<io.Error>>.from": 1,
                "<E as From<fmt.Error>>.from": 1,
                "A.new": 1,
                "<A as Default>.new": 1,
                "<A as IntoIterator>.into_iter": 1,
                "<&'a mut A as IntoIterator>.into_iter": 1,
                "<B<u8>>.get": 1,
                "<B<u16>>.get": 1,
                "A.add": 1,
                "A.path": 2,
            },
        ),
        (
            "a.ts",
            """
            class A {
              get size() { return 1; }
              set size(to) {}
              static size() {}
              static open() {}
              close = () => 1;
            }
            abstract class B { abstract run(): void; static run = () => 1; }
            function over(a: string): void;
            function over(a: any) {}
            """,
            {
                "A": 1,
                "A.prototype.size": 2,
                "A.size": 1,
                "A.open": 1,
                "A.close": 1,
                "B": 1,
                "B.prototype.run": 1,
                "B.run": 1,
                "over": 2,
            },
        ),
        (
            "a.js",
            """
            A.prototype.run = function () {};
            A.run = () => 1;
            B.prototype.run = () => 2;
            """,
            {"A.prototype.run": 1, "A.run": 1, "B.run": 1},
        ),
        ("a.java", "class A { void add(int a) {} static void add(long a) {} }", {"A": 1, "A.add": 2}),
        ("a.cc", "struct A { void add(int); void add(long); operator bool(); };", {"A": 1, "A.add": 2}),
        (
            "a.py",
            """
            @overload
            def f(a: int): ...
            def f(a): ...
            class A:
                @property
                def size(self): ...
                @size.setter
                def size(self, to): ...
            """,
            {"f": 2, "A": 1, "A.size": 2},
        ),
        (
            "a.md",
            """
            # Notes
            # Notes
            # Notes#2
            # In C#12
            # In C#11
            # std::a
            # std.a
            ## A#b
            ## A.b
            """,
            dict.fromkeys(
                ["Notes", "Notes#3", "Notes#2", "In C#12", "In C#11", "std::a", "std.a", "std.a > A#b", "std.a > A.b"],
                1,
            ),
        ),
    ],
    ids=["rust", "typescript", "javascript", "java", "c++", "python", "markdown"],
)
def test_which_definitions_are_one_entity(path: str, text: str, entities: dict[str, int]) -> None:
    outline = outline_of(path, dedent(text))
    assert outline.trouble == ""
    assert {name: len(symbols) for name, symbols in outline.entities.items()} == entities
    ids = [symbol.id for symbol in outline.symbols]
    assert len(ids) == len(set(ids))
    for symbol in outline.symbols[1:]:
        assert outline.entities[plain_name(symbol.id.partition("::")[2], path)].count(symbol) == 1
        if path != "a.md":
            assert parts_of(symbol.id) == symbol.names


def test_a_name_that_is_short_for_several_says_which() -> None:
    outline = outline_of("a.rs", "impl Display for A { fn fmt() {} }\nimpl Debug for A { fn fmt() {} }\n")
    assert outline.missing("A::fmt") == (
        "the file has no such symbol; it has `a.rs::<A as Display>.fmt` and `a.rs::<A as Debug>.fmt`"
    )
    assert outline.missing("A.len") == "the file has no such symbol"


BODY = "def area(side):\n    return side * side"


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (BODY, True),
        (BODY.replace("\n", "   \n"), True),
        ("def size(side):\n    return side * side", True),
        ("class Square:\n    def area(side):\n        return side * side", True),
        (BODY.replace("* side", "+ side"), False),
        (BODY.replace("    return", "  return"), False),
        (BODY.replace("\n", "\n\n"), False),
        ("@cache\n" + BODY, False),
    ],
    ids=[
        "same",
        "blanks-at-ends",
        "own-name",
        "into-a-class",
        "edit",
        "indent-inside",
        "blank-line-inside",
        "decorator",
    ],
)
def test_what_the_hash_of_a_function_sees(other: str, same: bool) -> None:
    first, second = outline_of("a.py", BODY), outline_of("a.py", other)
    assert (first.entity_body(first.symbols[-1:]) == second.entity_body(second.symbols[-1:])) is same


def test_swapped_names_are_not_the_same_text() -> None:
    one = outline_of("a.py", "class A:\n    def b(self): return A.b\n")
    other = outline_of("a.py", "class A:\n    def b(self): return b.A\n")
    assert one.entity_body(one.symbols[-1:]) != other.entity_body(other.symbols[-1:])


def test_lines_lie_in_the_innermost_symbol() -> None:
    outline = outline_of("a.py", dedent(PYTHON))
    assert outline.innermost(13, 13).id == "a.py::fetch.inner"
    assert outline.innermost(12, 14).id == "a.py::fetch"
    assert outline.innermost(14, 18).id == "a.py"
    same_lines = outline_of("b.py", "class K:\n    def m(self): ...")
    assert [same_lines.innermost(n, 2).id for n in (1, 2)] == ["b.py::K", "b.py::K.m"]


def test_a_missing_library_is_an_error_only_where_its_symbols_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar._parser.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter_go", None)
    with pytest.raises(MissingExtraError, match="finding symbols in go files needs an extra"):
        outline_of("a.go", GO)
    outline = outline_of("a.go", GO, needed=False)
    assert (outline.language, [symbol.id for symbol in outline.symbols]) == ("", ["a.go"])
    monkeypatch.undo()
    grammar._parser.cache_clear()
    assert len(outline_of("a.go", GO).symbols) == 1 + len(GO_SYMBOLS)


HOSTILE = {
    "headings without end": ("a.md", "# a\n" * 100_000, 100_000),
    "headings each under the next": ("a.md", "".join(f"{'#' * (1 + n % 6)} h{n}\n" for n in range(60_000)), 60_000),
    "blank lines at the end": ("a.txt", "a" + "\n" * 500_000, 0),
    "blank lines in a header": ("a.h", "\n" * 500_000 + "int a;", 0),
    "functions of one declaration": ("a.js", "var a=function(){}" + ",a=function(){}" * 20_000, 20_001),
    "types in types": ("a.rs", "impl a" + "<a" * 50_000 + ">" * 50_000 + "{ fn f(){} }", 1),
    "a long receiver": ("a.go", "package a\nfunc (a " + "b" * 500_000 + "[) f() {}", 1),
}


@pytest.mark.parametrize(("path", "text", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_read_in_time_that_grows_with_their_length(path: str, text: str, expected: int) -> None:
    """What grew with the square of it took minutes and more."""
    started = time.monotonic()
    assert len(outline_of(path, text).symbols) == 1 + expected
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("name", "plain"),
    [("A<B<C>>D", "AD"), ("a<b", "a<b"), ("a>b", "a>b"), ("<a><b>c", "c"), ("<a<b>c", "<ac"), ("a<b>>c", "a>c")],
)
def test_arguments_in_angle_brackets_are_left_out_of_a_name(name: str, plain: str) -> None:
    assert grammar._without_arguments(name) == plain
