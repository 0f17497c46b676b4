"""Sources of document texts in the operator's file: where the text of a document is read from, and how it is shown.

`{id}` stands for the id of a document, `{NAME}` for a named group of `match`. In an address they are percent-encoded;
`{+id}` keeps its slashes, as in RFC 6570.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol
from urllib.parse import parse_qsl, urlsplit

from pydantic import Field, PrivateAttr, Tag

from cranfield.base.errors import Problem, shorten, unknown_name
from cranfield.config.reading import compile_regex, compiles
from cranfield.config.services import SECRET_PARAMETERS, Host, Seconds
from cranfield.config.strict import Finding, Strict, by_key
from cranfield.model.kinds import Text

DocumentFormat = Literal["text", "markdown", "html", "code"]
KINDS = ("fields", "command", "file", "sql", "url", "corpus")
"""Kinds of source; a source has exactly one of these keys."""
_PLACEHOLDER = re.compile(r"\{(\+?)([A-Za-z_]\w*)\}")
_FLAGS = re.compile(r"\(\?[ims]+\)")
_BOUND = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(?<![:\w]):([A-Za-z_]\w*)")
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"


def compile_match(text: str) -> re.Pattern[str]:
    """Compile `match` as an expression for the whole id."""
    flags = _FLAGS.match(text)
    start = flags[0] if flags else ""
    compile_regex(text)
    return compile_regex(rf"{start}\A(?:{text[len(start) :]})\Z")


def fill_placeholders(text: str, values: Mapping[str, str], spell: Callable[[str, bool], str] | None = None) -> str:
    """A text with its placeholders filled in, in a single pass; unknown ones stay.

    Args:
        text: as the operator wrote it.
        values: name to value.
        spell: writes a value; its second argument is true for `{+name}`.
    """

    def replacement(found: re.Match[str]) -> str:
        if found[2] not in values:
            return found[0]
        return values[found[2]] if spell is None else spell(values[found[2]], found[1] == "+")

    return _PLACEHOLDER.sub(replacement, text)


def placeholder_names(text: str) -> list[str]:
    """Names of the placeholders of a text, in order."""
    return [found[2] for found in _PLACEHOLDER.finditer(text)]


def bind_parameters(statement: str, spell: Callable[[str], str]) -> str:
    """A statement whose parameters are spelled otherwise than `:id`; what is in quotes, and `::`, is unchanged."""
    return _BOUND.sub(lambda found: found[0] if found[1] is None else spell(found[1]), statement)


def parameter_names(statement: str) -> list[str]:
    """Names of the bound parameters of a statement, each once, in order."""
    return list(dict.fromkeys(found[1] for found in _BOUND.finditer(statement) if found[1] is not None))


Bytes = Annotated[int, Field(ge=1_000, le=16_000_000)]


class BaseSource(Strict):
    """Keys common to all kinds of source."""

    match: Annotated[str, compiles(compile_match)] | None = None
    """Regular expression for the whole id; its named groups are placeholders. Default: every id. The first source that matches
    and has the document is used."""
    format: DocumentFormat | None = None
    """Format of the text. Default: by the content type of `url`, the suffix of `file`, otherwise `text`."""
    template: Annotated[str, Field(max_length=10_000)] | None = None
    """Jinja template of what is shown, in HTML that is sanitised: `id`, `title`, `text`, `url`, `body` (the text as HTML) and
    `fields` (further columns) are its variables."""
    timeout_s: Seconds = 10.0
    """Seconds that a document may take."""
    max_bytes: Bytes = 2_000_000
    """Largest document, in bytes."""
    concurrency: Annotated[int, Field(ge=1, le=32)] = 4
    """Largest number of documents that are read at a time."""

    @property
    def kind(self) -> str:
        """Its key among `KINDS`."""
        return next(key for key in KINDS if key in type(self).model_fields)

    def parts(self) -> Iterator[tuple[tuple[str | int, ...], str, list[str]]]:
        """Every text in which placeholders may stand: where, the text, the names in it."""
        return iter(())

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """Unknown placeholders, a source that ignores the id, and a template that is none."""
        known = ["id", *(compile_match(self.match).groupindex if self.match else ())]
        named = [(place, text, name) for place, text, names in self.parts() for name in names]
        for place, text, name in named:
            if name not in known:
                problem = unknown_name("placeholder", name, known)
                yield place, Problem(problem.message, expected=problem.expected, got=shorten(text), hint=problem.hint)
        parts = list(self.parts())
        if parts and not named:
            yield parts[-1][0], Problem("{id} is missing: every document would have the same text")
        yield from self._template_problems()

    def _template_problems(self) -> Iterator[Finding]:
        from jinja2 import TemplateSyntaxError
        from jinja2.sandbox import SandboxedEnvironment

        try:
            SandboxedEnvironment().parse(self.template or "")
        except TemplateSyntaxError as error:
            yield ("template",), Problem(f"not a template: line {error.lineno}: {error.message}")


class RecordNames(Strict):
    """The names of a document's parts in a record."""

    title: Text = "title"
    """Name of the title."""
    text: Text = "text"
    """Name of the text. A record without it is shown as a list of its names and values."""
    url: Text = "url"
    """Name of the address that *open* leads to."""
    image: Text = "image"
    """Name of the image."""


class FieldsSource(BaseSource):
    """The fields that the runs give for the document."""

    fields: RecordNames
    """Names of the fields: `fields: {}` has `title`, `text`, `url` and `image`."""


class CommandSource(BaseSource):
    """The output of a program."""

    command: Annotated[list[Text], Field(min_length=1)]
    """Program and arguments; no shell reads them. An id that begins with `-` is refused, unless it follows `--`."""
    cwd: str = "."
    """Working directory, relative to this file."""
    env: list[Annotated[str, Field(pattern=f"^{_VARIABLE}$")]] = Field(default_factory=list)
    """Names of environment variables that are passed on, in addition to PATH, HOME, LANG, LC_ALL, TMPDIR and TZ."""

    def parts(self) -> Iterator[tuple[tuple[str | int, ...], str, list[str]]]:
        """The arguments."""
        for index, argument in enumerate(self.command):
            yield ("command", index), argument, placeholder_names(argument)

    def problems(self, file: Mapping[str, Any]) -> Iterator[Finding]:
        """A program that depends on the id."""
        yield from super().problems(file)
        if placeholder_names(self.command[0]) or not self.command[0].strip():
            yield ("command", 0), Problem("the program cannot depend on the document", got=shorten(self.command[0]))


class Files(Strict):
    """Where files are."""

    root: str
    """Folder, or repository of git, relative to this file. Nothing outside of it is read, and nothing in `.git`."""
    at: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Commit, branch or tag whose files are read from git; default: the files in the folder."""
    path: str = "{id}"
    """Path in `root`, with lines or without: `src/a.py`, `src/a.py:10-20`, `src/a.py#L10-L20`."""


class FileSource(BaseSource):
    """A file, or lines of it, in a folder or at a commit."""

    file: Files
    """Where the files are."""

    def parts(self) -> Iterator[tuple[tuple[str | int, ...], str, list[str]]]:
        """The path."""
        yield ("file", "path"), self.file.path, placeholder_names(self.file.path)


class Statement(Strict):
    """A statement over a database, which it can only read."""

    database: Text
    """`sqlite:PATH`, `duckdb:PATH`, relative to this file, or `env:NAME` of a variable that contains a PostgreSQL address."""
    query: Text
    """One SELECT with bound parameters: `SELECT name AS title, body AS text FROM docs WHERE id = :id`. Its first row is shown;
    the columns `title`, `text`, `url` and `image` are the parts of the document."""


class SqlSource(BaseSource):
    """A row of a database."""

    sql: Statement
    """Database and statement."""

    def parts(self) -> Iterator[tuple[tuple[str | int, ...], str, list[str]]]:
        """The statement, with its bound parameters."""
        yield ("sql", "query"), self.sql.query, parameter_names(self.sql.query)

    def problems(self, file: Mapping[str, Any]) -> Iterator[Finding]:
        """A placeholder in the statement, which would not be bound."""
        yield from super().problems(file)
        if self.sql.database.partition(":")[0] not in {"sqlite", "duckdb", "env"}:
            yield ("sql", "database"), Problem("not a database", expected="sqlite:PATH, duckdb:PATH or env:NAME")
        for name in placeholder_names(self.sql.query):
            hint = f"write :{name}, without quotes: the value is bound, and never part of the statement."
            yield ("sql", "query"), Problem(f"{{{name}}} in a statement", expected=f":{name}", hint=hint)


class UrlSource(BaseSource):
    """The answer of a web server."""

    url: Text
    """Address with `{id}`, percent-encoded, or `{+id}`, which keeps its slashes. Its host is fixed."""
    allow: list[Host] = Field(default_factory=list)
    """Hosts and networks that may be requested although their addresses are private: `wiki.intern`, `127.0.0.1`, `10.1.0.0/16`."""

    def parts(self) -> Iterator[tuple[tuple[str | int, ...], str, list[str]]]:
        """The address."""
        yield ("url",), self.url, placeholder_names(self.url)

    def problems(self, file: Mapping[str, Any]) -> Iterator[Finding]:
        """An address whose host depends on the document, or that holds a password."""
        yield from super().problems(file)
        try:
            parts = urlsplit(self.url)
        except ValueError:
            parts = urlsplit("")
        authority = parts.netloc
        if not self.url.startswith(("http://", "https://")) or not authority:
            yield ("url",), Problem("not an address", expected="http://... or https://...", got=shorten(self.url))
        elif "{" in authority:
            yield ("url",), Problem("the host cannot depend on the document", got=shorten(authority))
        elif "@" in authority:
            yield ("url",), Problem("user and password in an address", hint="leave them out: raters would see them.")
        if found := {name.lower() for name, _ in parse_qsl(parts.query)} & SECRET_PARAMETERS:
            yield ("url",), Problem(f"a secret in an address ({min(found)})", hint="raters would see it.")


class CorpusFile(RecordNames):
    """A file of records, one per document."""

    path: str
    """File, relative to this file: JSONL, also compressed with gzip (`.gz`); or a dataset of LlamaIndex, with its `corpus`."""
    id: Text = "id"
    """Name of the id."""


class CorpusSource(BaseSource):
    """A record of a file."""

    corpus: CorpusFile
    """The file and the names in its records."""


Source = Annotated[
    Annotated[FieldsSource, Tag("fields")]
    | Annotated[CommandSource, Tag("command")]
    | Annotated[FileSource, Tag("file")]
    | Annotated[SqlSource, Tag("sql")]
    | Annotated[UrlSource, Tag("url")]
    | Annotated[CorpusSource, Tag("corpus")],
    by_key(*KINDS),
]


class Images(Strict):
    """Images that documents may show. The server fetches them; a rater's browser requests nothing else."""

    hosts: list[Host] = Field(default_factory=list)
    """Hosts that images are fetched from: `cdn.example.org`, `*.example.org`."""
    allow: list[Host] = Field(default_factory=list)
    """Hosts and networks that may be requested although their addresses are private."""
    max_bytes: Bytes = 4_000_000
    """Largest image, in bytes."""
    timeout_s: Seconds = 10.0
    """Seconds that an image may take."""


class ConfigWithDocuments(Protocol):
    """A config, as far as texts of documents are concerned."""

    documents: list[Source]

    @property
    def folder(self) -> Path:
        """What its paths are relative to."""


class TextSources(Strict):
    """Where the texts of documents are read."""

    documents: list[Source] = Field(default_factory=list)
    """Sources of document texts, in order. A document that no source has is shown by the fields of the runs."""
    images: Images = Field(default_factory=Images)
    """Images; default: only those that are part of a record (`data:`)."""
    cache_s: Annotated[float, Field(ge=0, le=86_400)] = 600.0
    """Seconds that a text is kept before it is read again."""

    _folder: Path = PrivateAttr(default_factory=Path)

    @property
    def folder(self) -> Path:
        """What paths are relative to: the folder of the file."""
        return self._folder

    def set_base_dir(self, folder: Path) -> None:
        """Set the folder of the file."""
        self._folder = folder

    def with_documents_of(self, config: ConfigWithDocuments | None) -> TextSources:
        """For reading texts: with the sources of a config, and its folder, where this has none."""
        if self.documents or config is None or not config.documents:
            return self
        found = self.model_copy(update={"documents": config.documents})
        found.set_base_dir(config.folder)
        return found


def missing_files(sources: Sequence[Source], folder: Path) -> Iterator[Finding]:
    """Files and folders of sources that are not there; the sources are those of the key `documents`."""
    for index, source in enumerate(sources):
        match source:
            case CommandSource() if not (folder / source.cwd).is_dir():
                yield ("documents", index, "cwd"), Problem("no such folder", got=shorten(source.cwd))
            case FileSource() if not (folder / source.file.root).is_dir():
                yield ("documents", index, "file", "root"), Problem("no such folder", got=shorten(source.file.root))
            case CorpusSource() if not (folder / source.corpus.path).is_file():
                yield ("documents", index, "corpus", "path"), Problem("no such file", got=shorten(source.corpus.path))
            case SqlSource():
                kind, _, name = source.sql.database.partition(":")
                if kind != "env" and not (folder / name).is_file():
                    yield ("documents", index, "sql", "database"), Problem("no such file", got=shorten(name))
