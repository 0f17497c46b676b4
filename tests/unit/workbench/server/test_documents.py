"""Documents as HTML: nothing of a document runs, loads or leaves its place; the terms of the query are marked."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.config.documents import FieldsSource
from cranfield.judging.documents.texts import DocumentTexts
from cranfield.judging.documents.values import DocumentText
from cranfield.workbench.config import Workbench
from cranfield.workbench.server.documents import (
    ATTRIBUTES,
    MAX_MARKS,
    TAGS,
    highlight,
    query_terms,
    rendered,
    sanitise,
)


def document(content, kind="html", **more):
    return DocumentText("d1", "Title", content, content, kind, "test", **more)


class Audit(HTMLParser):
    """Every element and attribute of a page."""

    def __init__(self, markup):
        super().__init__(convert_charrefs=True)
        self.found, self.text = [], ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def handle_decl(self, decl):
        raise AssertionError(decl)

    def handle_comment(self, data):
        raise AssertionError(data)


ALLOWED = {"href", "rel", "target", "class", *(name for names in ATTRIBUTES.values() for name in names)}


def check_safe(markup):
    for tag, attributes in Audit(str(markup)).found:
        assert tag in {*TAGS, "mark"}
        assert set(attributes) <= ALLOWED
        assert attributes.get("class") in {None, "code", "text", "line", ""}
        assert re.match(r"(https?|mailto):|[^:]*$", attributes.get("href", "")), attributes
        if tag == "a":
            assert attributes["rel"] == "noopener noreferrer nofollow"
            assert attributes["target"] == "_blank"


HOSTILE = [
    "<script>alert(1)</script>",
    "<scr<script>ipt>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<img src='https://evil.test/track.png'>",
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<template><script>alert(1)</script></template>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data=x></object><embed src=x><applet></applet>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href=' java\tscript:alert(1)'>x</a>",
    "<a href='&#106;avascript:alert(1)'>x</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<a href='vbscript:x'>x</a><a href='//evil.test'>y</a><a href='/admin/delete'>z</a>",
    "<form action=/admin method=post><input name=csrf><button>Go</button></form>",
    "<p style='position:fixed;top:0;width:100%'>x</p><style>*{display:none}</style>",
    "<p id=main name=main onclick=alert(1) class='grade selected' data-grade=3>x</p>",
    "<base href='https://evil.test/'><meta http-equiv=refresh content='0;url=https://evil.test'><link rel=stylesheet href=x>",
    "<!--><script>alert(1)</script>--><![CDATA[<script>alert(1)</script>]]>",
    "<p>unclosed <b>bold <i>both</p></main></body></html><h1>out",
    "</div></div></article></main><p>after",
    "<textarea></textarea><img src=x onerror=alert(1)>",
    "<title></title><xmp><img src=x onerror=alert(1)></xmp><plaintext>rest",
    "\0<scr\0ipt>alert(1)</script>",
    "<a title='\"><img src=x onerror=alert(1)>'>x</a>",
    "<mark>fake</mark><dialog open>x</dialog><details open ontoggle=alert(1)>x</details>",
    "<span class=line data-line='1\"><script>'>x</span>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
]


@pytest.mark.parametrize("kind", ["html", "markdown", "text", "code"])
def test_nothing_of_a_hostile_document_is_left(kind):
    for content in HOSTILE:
        page = rendered(
            document(content, kind, template="<h1>{{ title }}</h1>{{ body }}{{ text[:100] }}"), "alert script img 1 x"
        )
        check_safe(page.html)
        assert page.problem is None


DEEP = [
    "<", "<div>", "<a href='", "<div></x>", "<b><i><p>", "<table><tr><td>", "<ul><li>", "<p><button>",
    "<dl><dd><p>", "<p>", "<li>", "<svg><p>", "<a>", "<nobr><font>", "<h1>", "</p>", "<!--", "<x ", "&",
    "<div><b></div>",
]  # fmt: skip


@pytest.mark.parametrize("size", [1_500, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_document_that_is_slow_to_parse(size):
    """The larger ones take minutes where the depth of a document is not limited."""
    for part in DEEP:
        page = rendered(document(part * (size // len(part)), "html", template="{{ body }}"), "alert")
        check_safe(page.html)


def test_a_document_of_normal_depth_is_not_cut():
    content = "<div>" * 250 + "<p>x<br><p>y" * 500 + "</div>" * 250 + "<p>end"
    assert "<p>end</p>" in rendered(document(content)).html


MARKDOWN = [
    "[x](javascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](https://evil.test/a.png)",
    "<img src=x onerror=alert(1)>",
    "[x]: javascript:alert(1)\n[x]",
    "<javascript:alert(1)>",
    '[a](https://x.test "t\\" onclick=alert(1)")',
    "```html\n<script>alert(1)</script>\n```",
    "> " * 500 + "deep",
    "[" * 3_000,
]


def test_markdown_is_sanitised_too():
    for content in MARKDOWN:
        check_safe(rendered(document(content, "markdown"), "alert").html)


@given(st.text(st.sampled_from("<>/=\"' &;abscript:xonl!-[]()#*`\n\té"), max_size=60), st.text(max_size=12))
def test_no_text_and_no_query_lead_to_an_element_that_is_not_allowed(content, query):
    for kind in ("html", "markdown", "text", "code"):
        check_safe(rendered(document(content, kind), query).html)


@given(st.text(max_size=80), st.text(max_size=20))
def test_marks_change_no_text(content, query):
    shown = rendered(document(content, "text"), query).html
    plain = rendered(document(content, "text")).html
    assert Audit(str(shown)).text == Audit(str(plain)).text


def test_what_a_document_keeps():
    page = rendered(
        document("<h1>A</h1><p lang=de>b <a href='https://x.test/?a=1&b=2'>c</a></p><table><tr><td colspan=2>d</table>")
    )
    assert page.html == (
        '<h2>A</h2><p lang="de">b <a href="https://x.test/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer nofollow">c</a>'
        '</p><table><tbody><tr><td colspan="2">d</td></tr></tbody></table>'
    )


def test_code_has_line_numbers():
    page = rendered(document("if a < b:\n    lock()\n", "code", first_line=9), "lock")
    assert page.html == (
        '<pre class="code"><code><span class="line" data-line="9">if a &lt; b:\n</span>'
        '<span class="line" data-line="10">    <mark>lock</mark>()\n</span></code></pre>'
    )


def test_a_long_document_is_cut_and_says_so():
    page = rendered(document("x" * 250_000, "text"))
    assert len(page.html) < 210_000
    assert "Only the first 200,000 of 250,000 characters are shown." in page.html


def test_a_problem_is_a_sentence():
    page = rendered(DocumentTexts().get("<d1>"), "x")
    assert (page.title, page.html, page.digest, page.problem_kind) == ("<d1>", "", "", "no_source")
    assert page.problem.startswith("Neither the runs nor a source of texts")


def test_a_document_that_cannot_be_shown_is_a_problem():
    page = rendered(document("a\ud800b"))
    assert (page.html, page.digest, page.problem_kind) == ("", "", "failed")
    assert page.problem == "This document cannot be shown."


# Marks


def test_terms_are_marked():
    for text, query, marked in [
        ("How to LOCK a file, unlock it", "lock files", ["LOCK"]),
        ("Café, cafe\u0301 and cafeteria", "CAFE", ["Café", "cafe\u0301"]),
        ("straße STRASSE", "Straße", ["straße", "STRASSE"]),
        ("\ufb01le \u24d0", "file a", ["\ufb01le"]),
        ("東京タワーへ", "東京", ["東京"]),
        ("the lock of the door", "the lock", ["lock"]),
        ("to be or not", "to be", ["to", "be"]),
        ("a.b*c (d) [e]", "b*c (d", ["b", "c", "d"]),
        ("x &amp; <b>y</b>", "amp b", ["amp", "b", "b"]),
        ("snake_case case", "case", ["case"]),
        ("C++ and C#", "c++", ["C", "C"]),
        ("nothing", "", []),
        ("nothing", "?!", []),
    ]:
        shown = str(rendered(document(text, "text"), query).html)
        assert [Audit(found).text for found in re.findall("<mark>(.*?)</mark>", shown)] == marked


def test_attributes_and_tags_are_not_marked():
    shown = highlight('<a href="https://x.test/lock" title="lock &gt; a">lock</a>', "lock a href x")
    assert shown == '<a href="https://x.test/lock" title="lock &gt; a"><mark>lock</mark></a>'


def test_marks_and_terms_have_a_limit():
    assert highlight("x " * 2 * MAX_MARKS, "x").count("<mark>") == MAX_MARKS
    assert len(query_terms(" ".join(f"word{number}" for number in range(200)))) == 40
    assert query_terms("x" * 100) == []


# Templates


def shown_by(template, **fields):
    texts = DocumentTexts(Workbench(documents=[FieldsSource(fields={}, template=template)]))
    return str(rendered(texts.get("d", fields), "lock").html)


def test_a_template():
    template = "<h1>{{ title }}</h1>{{ body }}<p>{{ fields.price }} of {{ fields.shop.name }}{% for t in fields.tags %}, {{ t }}{% endfor %}</p>"
    assert shown_by(template, title="A <lock>", text="b", price=3, tags=["<i>", "y"]) == (
        '<h2>A &lt;<mark>lock</mark>&gt;</h2><pre class="text">b</pre><p>3 of , &lt;i&gt;, y</p>'
    )


def test_a_template_cannot_leave_its_sandbox():
    for template in [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ fields.__init__.__globals__ }}",
        "{{ body.__class__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ lipsum.__globals__ }}",
        "{{ fields.update({'a': 1}) }}",
        "{% include '/etc/passwd' %}",
        "{% for i in range(10000000) %}x{% endfor %}",
        "{{ 1 / 0 }}",
        "{{ 'a'.format(1).__class__ }}",
        "{{ '{0.__class__.__mro__}'.format(title) }}",
        "<script>{{ title }}</script><p onclick={{ title }}>",
        "{{ text | safe }}",
    ]:
        shown = shown_by(template, title="t", text="<script>alert(1)</script>safe text")
        check_safe(shown)
        assert not re.search("class '|root:|builtins|uid=", shown)


def test_what_a_template_gives_has_a_limit(monkeypatch):
    monkeypatch.setattr("cranfield.workbench.server.documents.MAX_CHARS", 1_000)
    assert len(shown_by("{% for i in range(90000) %}<p>{{ text }}</p>{% endfor %}", text="x" * 100)) < 10_000


def test_sanitised_html_stays_as_it_is():
    for content in HOSTILE:
        assert sanitise(sanitise(content)) == sanitise(content)
