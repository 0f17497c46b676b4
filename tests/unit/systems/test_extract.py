import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield.base.patterns import most_steps
from cranfield.config import system_config
from cranfield.model import Hit, Outcome
from cranfield.systems.calls import regex_process
from cranfield.systems.calls.answer_schema import MAX_HITS, to_answer
from cranfield.systems.calls.extract import Extractor


def read(output: str, extract: dict, *, k: int = 10, **config):
    system = system_config("sut", {"command": ["x", "{query}"], "extract": extract, **config})
    return Extractor(system).read(output, k)


def ids(answer):
    return [hit.id for hit in answer.hits]


URI = {"regex": r"docs://[^\s`]+"}


class TestFailed:
    @pytest.mark.parametrize(
        ("failed", "document", "reason"),
        [
            ("partial", {"r": ["a"], "partial": True}, "true"),
            ("warnings", {"r": ["a"], "warnings": ["one shard is down"]}, '["one shard is down"]'),
            ("note", {"r": ["a"], "note": "the index is loading\nline 2"}, "the index is loading"),
            ("{missing: missing, slow: slow}", {"r": ["a"], "missing": 3, "slow": False}, "missing: 3"),
        ],
    )
    def test_what_it_gives_is_why_the_answer_is_a_failure(self, failed, document, reason):
        answer = read(json.dumps(document), {"json": "r", "failed": failed})
        assert (answer.outcome, answer.reason) == (Outcome.ERROR, f"the answer is incomplete: {reason}")
        lines = read(json.dumps(document), {"jsonl": "r", "failed": f"[].{failed} | [0]"})
        assert (lines.outcome, lines.hits) == (Outcome.ERROR, ())

    @pytest.mark.parametrize(
        ("document", "reason"),
        [
            ({"timed_out": True, "_shards": {"failed": 0}}, "timed_out: true"),
            ({"timed_out": False, "_shards": {"failed": 2}}, "failed_shards: 2"),
            ({"responseHeader": {"partialResults": True}}, "partialResults: true"),
            ({"root": {"coverage": {"degraded": {"timeout": True}}}}, "timeout: true"),
        ],
    )
    def test_by_default_it_is_what_engines_say(self, document, reason):
        text = json.dumps({"r": ["a"], **document})
        answer = read(text, {"json": "r"})
        assert (answer.outcome, answer.reason) == (Outcome.ERROR, f"the answer is incomplete: {reason}")
        assert ids(read(text, {"json": "r", "failed": None})) == ["a"]

    @pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
    def test_nothing_of_any_kind_is_no_failure(self, value):
        for failed in ("partial", "{partial: partial}", "absent"):
            answer = read(json.dumps({"r": ["a"], "partial": value}), {"json": "r", "failed": failed})
            assert ids(answer) == ["a"]


class TestRegex:
    @pytest.mark.parametrize(
        ("regex", "output", "expected"),
        [
            (r"docs://\S+", "1. docs://b\n2. docs://a\n", ["docs://b", "docs://a"]),
            (r"<(docs://\S+)>", "<docs://b> <docs://a>", ["docs://b", "docs://a"]),
            (r"(\d+)\. (?P<id>\S+)", "1. b\n2. a\n", ["b", "a"]),
            (r"docs://[^\s`]+", "`docs://swift/f(x:)` and `docs://b`", ["docs://swift/f(x:)", "docs://b"]),
        ],
    )
    def test_the_id_is_the_group_id_else_group_1_else_the_match(self, regex, output, expected):
        answer = read(output, {"regex": regex})
        assert (answer.outcome, ids(answer)) == (Outcome.ANSWERED, expected)

    def test_all_groups_are_kept(self):
        regex = r"(?m)^(?P<score>\S+) (?P<id>\S+)(?: \"(?P<title>[^\"]*)\")?(?: @(?P<span>\S+))?$"
        answer = read('-3.5 a "T t" @1-2\n1e-2 b\n', {"regex": regex})
        assert answer.hits == (Hit("a", -3.5, "T t", "1-2"), Hit("b", 0.01, None, None))

    def test_nothing_is_deduplicated_sorted_or_cut(self):
        assert ids(read("docs://b docs://a docs://b", URI, k=1)) == ["docs://b", "docs://a", "docs://b"]

    @pytest.mark.parametrize("output", ["", "\n", " \n\t\n"])
    def test_blank_output_is_an_honest_empty_list(self, output):
        assert read(output, URI).outcome is Outcome.EMPTY

    def test_no_match_is_unparsable_unless_empty_tells_otherwise(self):
        unset = read("Nothing found", URI)
        assert (unset.outcome, unset.reason) == (
            Outcome.UNPARSABLE,
            "no result matched extract.regex, and empty is not set; for an answer without results: empty: '^No results'",
        )
        other = read("New format: <a/>", URI, empty="Nothing found")
        assert (other.outcome, other.reason) == (
            Outcome.UNPARSABLE,
            "no result matched extract.regex, and empty did not match",
        )
        assert read("Nothing found", URI, empty="^Nothing found$").outcome is Outcome.EMPTY

    def test_results_win_over_the_word_for_no_results(self):
        assert ids(read("docs://how-to-say-No-results", URI, empty="No-results")) == ["docs://how-to-say-No-results"]

    def test_a_match_without_an_id_is_named_by_its_position_and_nothing_moves_up(self):
        answer = read("id=a id= id=c", {"regex": r"id=(\S*)"})
        assert (answer.outcome, answer.reason, answer.hits) == (Outcome.UNPARSABLE, "result 2 has no id", ())

    @pytest.mark.parametrize(
        ("output", "fields"),
        [
            ("mode: semantic\nconfidence 0.9\nd1\n", {"mode": "semantic", "confidence": 0.9}),
            ("mode: true\nconfidence 1e999\nd1\n", {"mode": True, "confidence": "1e999"}),  # no finite number
            ("d1\nmode: a\nmode: b\n", {"mode": "a"}),  # the first match; without one there is no field
            ("nothing found; mode: semantic\n", {"mode": "semantic"}),
        ],
    )
    def test_fields_are_read_from_text_by_their_own_expressions(self, output, fields):
        extract = {"regex": r"\bd\d\b", "fields": {"mode": r"mode: (\w+)", "confidence": r"confidence (\S+)"}}
        answer = read(output, extract, empty="nothing found")
        assert answer.fields == fields
        assert answer.outcome is (Outcome.EMPTY if "nothing" in output else Outcome.ANSWERED)

    def test_a_field_without_a_group_is_the_whole_match(self):
        assert read("d1 semantic", {"regex": "d1", "fields": {"mode": "semantic|lexical"}}).fields == {
            "mode": "semantic"
        }

    @pytest.mark.parametrize("score", ["high", "nan", "inf", "-inf", "1e999"])
    def test_a_score_that_is_no_finite_number_is_unparsable(self, score):
        answer = read(f"a 1\nb {score}", {"regex": r"(?P<id>\w) (?P<score>\S+)"})
        assert (answer.outcome, answer.reason) == (
            Outcome.UNPARSABLE,
            "result 2 has no score that is a finite number",
        )

    def test_a_missing_score_matters_only_where_it_orders(self):
        extract = {"regex": r"(?P<id>docs://\w)(?: (?P<score>\d))?"}
        assert [hit.score for hit in read("docs://a 1\ndocs://b", extract).hits] == [1.0, None]
        assert read("docs://a 1\ndocs://b", extract, order="descending").outcome is Outcome.UNPARSABLE


DOCUMENT = {
    "meta": {"confidence": 0.7, "tokens": 12},
    "results": [
        {"uri": "a", "score": 2, "title": "A", "span": "1-4"},
        {"uri": 7, "score": -0.5, "title": None},
    ],
}
JSON = {"json": "results[]", "id": "uri", "score": "score", "title": "title", "span": "span"}


class TestJson:
    def test_hits_and_fields_are_read(self):
        fields = {"confidence": "meta.confidence", "answer": "meta.answer", "n": "length(results)"}
        answer = read(json.dumps(DOCUMENT), {**JSON, "fields": fields})
        assert answer.hits == (Hit("a", 2.0, "A", "1-4"), Hit("7", -0.5, None, None))
        assert answer.fields == {"confidence": 0.7, "answer": None, "n": 2}
        assert answer.outcome is Outcome.ANSWERED

    def test_results_may_be_ids_alone(self):
        assert ids(read('{"r": ["b", "a"]}', {"json": "r"})) == ["b", "a"]

    def test_an_empty_list_is_honest_and_keeps_its_fields(self):
        answer = read('{"results": [], "meta": {"c": 0.1}}', {**JSON, "fields": {"c": "meta.c"}})
        assert (answer.outcome, answer.hits, answer.fields) == (Outcome.EMPTY, (), {"c": 0.1})

    @pytest.mark.parametrize(
        ("output", "reason"),
        [
            ("", "the output is blank, not JSON"),
            (" \n", "the output is blank, not JSON"),
            ("Error: no index", "the output is not JSON (line 1, column 1)"),
            ('{"results": [\n{]', "the output is not JSON (line 2, column 2)"),
            ('{"results": []} {"results": []}', "the output is not JSON (line 1, column 17)"),
            ('{"results": [{"uri": "a", "score": NaN}]}', "the output cannot be parsed as JSON"),
            ("[" * 100_000, "the output cannot be parsed as JSON"),
            ("{}", "extract.json gave null, not a list"),
            ("[1]", "extract.json gave null, not a list"),
            ('{"results": [{"uri": "a"}, {"url": "b"}, {"uri": "c"}]}', "result 2 has no id"),
            ('{"results": [{"uri": ""}]}', "result 1 has no id"),
            ('{"results": [{"uri": " "}]}', "result 1 has no id"),
            ('{"results": [{"uri": null}]}', "result 1 has no id"),
            ('{"results": [{"uri": "a"}, {"uri": 1.5}]}', "result 2 has a number for an id"),
            ('{"results": [{"uri": true}]}', "result 1 has true or false for an id"),
            ('{"results": [{"uri": ["a"]}]}', "result 1 has a list for an id"),
            ('{"results": [{"uri": "a", "score": "9"}]}', "result 1 has no score that is a finite number"),
            ('{"results": [{"uri": "a", "score": true}]}', "result 1 has no score that is a finite number"),
            ('{"results": [{"uri": "a", "score": 1e999}]}', "result 1 has no score that is a finite number"),
            (
                f'{{"results": [{{"uri": "a", "score": 1{"0" * 400}}}]}}',
                "result 1 has no score that is a finite number",
            ),
        ],
    )
    def test_what_is_not_the_agreed_document_is_unparsable_with_the_reason(self, output, reason):
        answer = read(output, JSON)
        assert (answer.outcome, answer.reason, answer.hits) == (Outcome.UNPARSABLE, reason, ())

    @pytest.mark.parametrize(
        ("value", "kind"), [('"x"', "text"), ("3", "a number"), ("true", "true or false"), ("{}", "an object")]
    )
    def test_a_list_that_is_none_is_called_what_it_is(self, value, kind):
        assert read(f'{{"results": {value}}}', {"json": "results"}).reason == f"extract.json gave {kind}, not a list"

    def test_a_null_among_the_results_is_not_skipped(self):
        assert read('{"r": ["a", null, "b"]}', {"json": "r"}).reason == "result 2 has no id"

    def test_empty_tells_blank_output_or_a_sentence_from_a_failure(self):
        assert read("", JSON, empty="^$").outcome is Outcome.EMPTY
        assert read("No results.\n", JSON, empty="^No results").outcome is Outcome.EMPTY
        assert read("Segmentation", JSON, empty="^$|^No results").outcome is Outcome.UNPARSABLE

    def test_a_function_given_the_wrong_kind_of_value_is_unparsable(self):
        answer = read('{"results": []}', {**JSON, "fields": {"n": "length(meta)"}})
        assert answer.reason == "extract.fields.n cannot be evaluated on this output"

    def test_a_byte_order_mark_is_no_obstacle(self):
        assert ids(read("\ufeff" + json.dumps(DOCUMENT), JSON)) == ["a", "7"]

    def test_other_scalars_and_lists_become_text_in_title_and_span(self):
        answer = read(
            '{"r": [{"id": "a", "t": 3, "s": [12, 40]}]}', {"json": "r", "id": "id", "title": "t", "span": "s"}
        )
        assert answer.hits == (Hit("a", None, "3", "[12, 40]"),)


LINES = {"jsonl": True, "id": "uri", "score": "score"}


class TestJsonLines:
    def test_each_line_is_a_result_and_the_document_is_their_list(self):
        output = '{"uri": "b", "score": 2}\n\n{"uri": "a", "score": 1}\r\n'
        answer = read(output, {**LINES, "fields": {"best": "[0].score", "n": "length(@)"}})
        assert answer.hits == (Hit("b", 2.0), Hit("a", 1.0))
        assert answer.fields == {"best": 2, "n": 2}

    def test_a_path_gives_the_result_of_a_line_or_several_and_lines_without_any_are_of_another_kind(self):
        output = '{"took": 3}\n{"hit": {"uri": "a"}}\n{"hit": [{"uri": "b"}, {"uri": "c"}]}\n'
        assert ids(read(output, {"jsonl": "hit", "id": "uri"})) == ["a", "b", "c"]

    def test_a_path_that_finds_nothing_anywhere_is_not_an_empty_list(self):
        extract = {"jsonl": "hitt", "id": "uri"}
        answer = read('{"hit": {"uri": "a"}}\n', extract)
        assert (answer.outcome, answer.reason) == (Outcome.UNPARSABLE, "extract.jsonl found nothing in any line")
        assert read('{"total": 0}\n', extract, empty='"total": 0').outcome is Outcome.EMPTY

    @pytest.mark.parametrize("output", ["", "\n\n"])
    def test_no_line_is_an_honest_empty_list(self, output):
        assert read(output, LINES).outcome is Outcome.EMPTY

    def test_a_line_that_is_not_json_is_named(self):
        assert read('{"uri": "a"}\nwarning: x\n', LINES).reason == "line 2 of the output is not JSON"

    def test_a_line_separator_inside_text_does_not_break_the_line(self):
        assert ids(read('{"uri": "a\u2028b"}\n', {"jsonl": True, "id": "uri"})) == ["a\u2028b"]

    def test_a_line_without_an_id_is_named_by_its_position(self):
        assert read('{"uri": "a"}\n{"url": "b"}\n', {"jsonl": True, "id": "uri"}).reason == "result 2 has no id"


class TestManyResults:
    def test_beyond_a_sane_number_the_rest_of_a_given_order_is_not_read(self):
        output = " ".join(f"docs://{number}" for number in range(MAX_HITS + 5))
        answer = read(output, URI)
        assert (len(answer.hits), answer.hits[-1].id) == (MAX_HITS, f"docs://{MAX_HITS - 1}")

    def test_a_large_k_raises_it(self):
        output = " ".join(f"docs://{number}" for number in range(MAX_HITS + 5))
        assert len(read(output, URI, k=MAX_HITS).hits) == MAX_HITS + 5

    def test_where_the_score_orders_it_is_a_failure_for_the_best_may_be_last(self):
        output = " ".join(f"d{number}={number}" for number in range(MAX_HITS + 1))
        answer = read(output, {"regex": r"(?P<id>d\d+)=(?P<score>\d+)"}, order="descending")
        assert (answer.outcome, answer.reason) == (Outcome.UNPARSABLE, "over 10000 results, to be sorted by score")


def own_form(output: str, **config):
    return Extractor(system_config("sut", {"lines": ["x"], **config})).read(output, 10)


class TestOwnForm:
    def test_hits_are_ids_pairs_or_objects_and_fields_go_with_the_answer(self):
        hits = '["d1", ["d2", 2], {"id": "d3", "score": 1, "title": "T", "span": "1-2", "tokens": 30, "more": 1}]'
        answer = own_form(f'{{"hits": {hits}, "fields": {{"confidence": 0.5, "local": true}}, "took": 3}}')
        assert answer.hits == (Hit("d1"), Hit("d2", 2.0), Hit("d3", 1.0, "T", "1-2", 30.0))
        assert answer.fields == {"confidence": 0.5, "local": True}

    @pytest.mark.parametrize("output", ['{"hits": []}', "[]", '{"hits": [], "error": null, "fields": null}'])
    def test_no_hit_is_an_honest_empty_list(self, output):
        answer = own_form(output)
        assert (answer.outcome, answer.hits, answer.fields) == (Outcome.EMPTY, (), {})

    @pytest.mark.parametrize(
        ("output", "outcome", "reason"),
        [
            ('{"error": "no index\\nsee the log"}', Outcome.ERROR, "no index"),
            ('{"error": ""}', Outcome.ERROR, "an error without a message"),
            ('{"error": {"code": 3}, "hits": []}', Outcome.ERROR, '{"code": 3}'),
            ('{"results": []}', Outcome.UNPARSABLE, 'the answer is an object without "hits"'),
            ("null", Outcome.UNPARSABLE, "the answer is null, not a list of hits, or an object with hits"),
            ('{"hits": [{"id": "d1"}, {"doc": 2}]}', Outcome.UNPARSABLE, "result 2 has no id"),
            (
                '{"hits": [{"id": "d1", "tokens": "3"}]}',
                Outcome.UNPARSABLE,
                "result 1 has a token count that is not a finite",
            ),
            ("", Outcome.UNPARSABLE, "the output is blank, not JSON"),
            ("No results", Outcome.EMPTY, None),
        ],
    )
    def test_what_cannot_be_read_has_a_reason(self, output, outcome, reason):
        answer = own_form(output, empty="^No results")
        assert answer.outcome is outcome
        assert answer.reason == reason or answer.reason.startswith(reason)

    def test_where_the_score_orders_each_hit_has_one(self):
        assert own_form('{"hits": ["d1"]}', order="descending").outcome is Outcome.UNPARSABLE


class TestTokens:
    def test_what_a_result_costs_is_read_by_path_or_by_group(self):
        by_path = read('{"r": [{"u": "a", "n": 12}, {"u": "b"}]}', {"json": "r", "id": "u", "tokens": "n"})
        assert by_path.hits == (Hit("a", tokens=12.0), Hit("b"))
        by_group = read("a 12\nb 0\n", {"regex": r"(?P<id>\w) (?P<tokens>\d+)"})
        assert by_group.hits == (Hit("a", tokens=12.0), Hit("b", tokens=0.0))

    @pytest.mark.parametrize("tokens", ["-1", '"12"', "true", "1e999", "[]"])
    def test_what_is_no_number_of_0_or_more_is_unparsable(self, tokens):
        answer = read(f'{{"r": [{{"u": "a", "n": {tokens}}}]}}', {"json": "r", "id": "u", "tokens": "n"})
        assert answer.outcome is Outcome.UNPARSABLE
        assert answer.reason == "result 1 has a token count that is not a finite number of 0 or more"


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["hits", "fields", "error", "id", "score", "tokens"]), inner)
    ),
    max_leaves=12,
)


@given(value=ANY_JSON, order=st.sampled_from(["given", "descending"]))
@settings(max_examples=min(300, 3 * settings().max_examples))
def test_any_value_is_an_answer_or_a_failure_with_a_reason(value, order):
    answer = to_answer(value, 10, order)
    assert (answer.reason is None) == (answer.outcome in {Outcome.ANSWERED, Outcome.EMPTY})
    assert json.dumps(dict(answer.fields), allow_nan=False)
    assert all(isinstance(hit.id, str) and hit.id.strip() for hit in answer.hits)
    if order == "descending":
        assert all(hit.score is not None for hit in answer.hits)


class TestSearchesWithoutEnd:
    """`(a+)+$` takes 2^60 steps on `aaa…b`: the search is made in a process that the time limit ends."""

    OUTPUT = "a" * 60 + "b"
    LATE = "took over 0.2 s on this output"

    def test_extract_regex_is_ended_by_the_time_limit(self):
        answer = read(self.OUTPUT, {"regex": r"(a+)+$"}, timeout_s=0.2)
        assert (answer.outcome, answer.reason) == (Outcome.UNPARSABLE, f"extract.regex {self.LATE}")

    def test_empty_is_ended_too(self):
        answer = read(self.OUTPUT, {"regex": "docs://\\S+"}, empty=r"(a+)+$", timeout_s=0.2)
        assert (answer.outcome, answer.reason) == (Outcome.UNPARSABLE, f"empty {self.LATE}")

    def test_so_is_a_field_and_later_outputs_are_read(self):
        extract = {"regex": "a+", "fields": {"mode": r"(a+)+$"}}
        answer = read(self.OUTPUT, extract, timeout_s=0.2)
        assert (answer.outcome, answer.reason) == (Outcome.UNPARSABLE, f"extract.fields.mode {self.LATE}")
        assert read("aaa", extract).fields == {"mode": "aaa"}

    def test_two_repeats_on_a_long_output_are_searched_in_the_process_as_here(self):
        output = "".join(f"{place}. <docs://é{place}> ({place / 8})\n" for place in range(1, 500))
        regex = r"(?P<rank>\d+)\. <(?P<id>[^>]*)>(?: \((?P<score>[\d.]+)\))?"
        assert most_steps(regex, len(output)) > 1e9
        answer = read(output, {"regex": regex}, k=1000)
        found = [(match["id"], float(match["score"])) for match in re.finditer(regex, output)]
        assert [(hit.id, hit.score) for hit in answer.hits] == found

    @pytest.mark.parametrize(
        ("regex", "length", "steps"),
        [
            ("doc", 10, 44),  # 4 at each of the 11 places where it may begin
            ("a+", 9, 150),  # 10^2 / 2, 3 times
            ("a+|b?", 9, 1200),  # 10^2 / 2, for either choice, 6 times
            ("(?:a)b", 10, 77),
            ("(a+)+", 10, math.inf),
            (r"(a)\1", 10, math.inf),
            ("(?P<n>a)(?P=n)", 10, math.inf),
            ("(?x) (a+) +", 10, math.inf),  # white space does not count there
            ("(?x: (a+) +)", 10, math.inf),
            ("a?" * 31 + "a*" * 60, 1_000_000, math.inf),
        ],
    )
    def test_the_bound_of_the_steps(self, regex, length, steps):
        assert most_steps(regex, length) == steps

    def test_much_text_found_is_an_error(self, monkeypatch):
        monkeypatch.setattr(regex_process, "_MAX_FOUND_BYTES", 2000)
        monkeypatch.setattr(regex_process, "_idle", [])
        answer = read("x" * 5000, {"regex": "(?=(x+))((x)+)"})
        assert (answer.outcome, answer.reason.partition(" over ")[0]) == (Outcome.UNPARSABLE, "extract.regex found")
