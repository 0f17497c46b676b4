"""`cranfield trec_eval` prints what trec_eval 10.0 and 9.0.8 print, to the character."""

import gzip
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import pytrec_eval
from typer.testing import CliRunner

from cranfield.cli.main import command_line
from cranfield.compat.trec_eval.options import OPTIONS

FIXTURES = Path(__file__).parent / "trec_eval"
UNDEFINED = ("rbp ", "Zrbp ")
"""Rows that trec_eval 10.0 computes from memory it never sets."""
COMMANDS = [
    shlex.split(line) for line in (FIXTURES / "commands.txt").read_text().splitlines() if not line.startswith("#")
]


def trec_eval(*arguments, code=0, stdin=None):
    """Run the command in this process; (stdout, stderr)."""
    done = CliRunner().invoke(command_line("trec_eval"), ["trec_eval", *map(str, arguments)], input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr)
    return done.stdout_bytes.decode("utf-8", "surrogateescape"), done.stderr


def defined(text):
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(UNDEFINED))


@pytest.fixture
def fixtures(monkeypatch):
    monkeypatch.chdir(FIXTURES)


PARAMETERS = (
    "-q -miprec_at_recall..10,.20,.25,.75,.50 -m P.5,7,3 -m recall.20,2000 -m Rprec_mult.5.0,0.2,0.35 -mutility.2,-1,0,0 "
    "-m 11pt_avg..25,.5,.75 -mndcg.1=3,2=9,4=4.5 -mndcg_cut.10,20,23.4 -msuccess.2,5,20"
)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("qrels.test results.test", "out.test"),
        ("qrels.test.with-comments results.test", "out.test"),
        ("qrels.comment.test results.comment.test", "out.comment.test"),
        ("-m all_trec qrels.test results.test", "out.test.a"),
        ("-m all_trec -q qrels.test results.test", "out.test.aq"),
        ("-m all_trec -q -c qrels.test results.trunc", "out.test.aqc"),
        ("-m all_trec -q -c -M100 qrels.test results.trunc", "out.test.aqcM"),
        ("-m all_trec -mrelstring.20 -q -l2 qrels.rel_level results.test", "out.test.aql"),
        ("-m all_prefs -q -R prefs prefs.test prefs.results.test", "out.test.prefs"),
        ("-m all_prefs -q -R prefs prefs.comment.test prefs.results.test", "out.test.prefs"),
        ("-m all_prefs -q -R qrels_prefs qrels.test results.test", "out.test.qrels_prefs"),
        ("-m qrels_jg -q -R qrels_jg qrels.123 results.test", "out.test.qrels_jg"),
        ("-m qrels_jg -q -R qrels_jg qrels.comments.123 results.test", "out.test.qrels_jg"),
        (f"{PARAMETERS} qrels.test results.test", "out.test.meas_params"),
        ("-q -m all_trec -Z zscores_file qrels.test results.test", "out.test.aqZ"),
    ],
)
def test_trec_evals_own_test_set(arguments, expected, shared_data, monkeypatch):
    monkeypatch.chdir(shared_data / "trec_eval")
    stdout, stderr = trec_eval(*shlex.split(arguments))
    assert defined(stdout) == defined(Path(expected).read_text())
    assert stderr == ""


@pytest.mark.usefixtures("fixtures")
@pytest.mark.parametrize(("name", "version", "arguments"), [(c[0], c[1], c[2:]) for c in COMMANDS])
def test_inputs_of_our_own(name, version, arguments):
    stdout, _ = trec_eval("--as", version, *arguments)
    assert defined(stdout) == (FIXTURES / "expected" / f"{name}.out").read_text()


def test_every_expected_output_belongs_to_a_command():
    assert sorted(path.stem for path in (FIXTURES / "expected").iterdir()) == sorted(command[0] for command in COMMANDS)


@pytest.mark.usefixtures("fixtures")
def test_both_versions_leave_missing_queries_out_and_say_so():
    arguments = ("-q", "-m", "map", "-m", "num_q", "graded.qrels", "short.run")
    newer, older = trec_eval(*arguments), trec_eval("--as", "9", *arguments)
    assert newer == older
    assert "num_q                 \tall\t2\n" in newer[0]
    assert newer[1] == "warning: judged queries without a result are left out: q2, q7; -c counts them as 0\n"
    assert trec_eval("-c", *arguments)[1] == ""


def test_rank_biased_precision_has_the_value_it_is_defined_to_have(tmp_path):
    write(tmp_path / "qrels", ["q 0 a 2", "q 0 b 1"])
    write(tmp_path / "run", ["q Q0 a 1 2 t", "q Q0 b 2 1 t"])
    stdout, _ = trec_eval("-m", "rbp", tmp_path / "qrels", tmp_path / "run")
    # gains over the highest of the query, p = 0.9: 0.1 * (2/2 + 0.9 * 1/2)
    assert stdout == "rbp                   \tall\t0.1450\n"
    # gains 4 and 0, p = 0.5: 0.5 * 4/4
    stdout, _ = trec_eval("-m", "rbp.p=0.5,2=4,1=0", tmp_path / "qrels", tmp_path / "run")
    assert stdout == "rbp_p=0.5,2=4,1=0     \tall\t0.5000\n"


def test_a_grade_of_two_digits_is_one_character(tmp_path):
    write(tmp_path / "qrels", ["q 0 a 9", "q 0 b 10", "q 0 c 0"])
    write(tmp_path / "run", [f"q Q0 {doc} 0 {-place} t" for place, doc in enumerate("abcd")])
    assert trec_eval("-q", "-m", "relstring", tmp_path / "qrels", tmp_path / "run")[0].split()[-1] == "'9>0-'"


@pytest.mark.usefixtures("fixtures")
def test_parameters_without_effect_are_named():
    stdout, stderr = trec_eval("-m", "map.3", "-mP.1", "-mP.2", "-m", "official.5", "graded.qrels", "tied.run")
    assert "P_1 " in stdout
    assert "P_2 " not in stdout
    assert stderr.splitlines() == [
        "warning: -m map.3: map takes no parameters; they have no effect",
        "warning: -m P.2: has no effect after -m P.1",
        "warning: -m official.5: official is a set of measures; its parameters have no effect",
    ]


PLAIN = "-q -c -M 3 -m map -m P.5 graded.qrels tied.run"


@pytest.mark.usefixtures("fixtures")
@pytest.mark.parametrize(
    "arguments",
    [
        "graded.qrels tied.run -qcM3 -mmap -mP.5",
        "-qcmmap -M3 graded.qrels -m P.5 tied.run",
        "--query_eval_wanted --complete --Max_retrieved=3 --meas map --measure=P.5 graded.qrels tied.run",
        "-o -T trec_results -R qrels -D0 -qcmmap -M3 -M 3 -l1 -m P.5 -m map --as 10.0 graded.qrels tied.run",
    ],
)
def test_options_are_written_in_all_the_ways_of_getopt(arguments):
    assert trec_eval(*shlex.split(arguments)) == trec_eval(*shlex.split(PLAIN))


@pytest.mark.usefixtures("fixtures")
def test_a_run_is_read_from_standard_input_and_from_packed_files(tmp_path):
    run = (FIXTURES / "tied.run").read_bytes()
    packed = tmp_path / "run.gz"
    packed.write_bytes(gzip.compress(run))
    plain = trec_eval("graded.qrels", "tied.run")
    assert trec_eval("graded.qrels", packed) == plain
    assert trec_eval("graded.qrels", "-", stdin=run) == plain


def test_the_program_itself_prints_bytes_and_leaves_nothing_behind(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "qrels").write_bytes(b"q\xff 0 d 1\n")
    (tmp_path / "run").write_bytes(b"q\xff Q0 d 1 1 t\xe9\n")
    command = [sys.executable, "-m", "cranfield", "trec_eval", "-q", "-m", "map", "-m", "runid", "qrels", "-"]
    with (tmp_path / "run").open("rb") as run:
        done = subprocess.run(command, cwd=tmp_path, stdin=run, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.splitlines() == [
        b"map                   \tq\xff\t1.0000",
        b"runid                 \tall\tt\xe9",
        b"map                   \tall\t1.0000",
    ]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_the_tag_is_that_of_the_last_result(tmp_path):
    """Beyond what is looked at first: a long comment, and a file of many lines."""
    (tmp_path / "qrels").write_text("q 0 d 1\n")
    lines = "".join(f"q Q0 u{i} 0 1 early\n" for i in range(9000))
    for tail in ("q Q0 d 0 2 last one\n", "q Q0 d 0 2 last\n\n# q Q0 x 0 2 not\n", "q Q0 d 0 2 last\n#" + "x" * 70000):
        (tmp_path / "run").write_text(lines + tail)
        assert trec_eval("-m", "runid", tmp_path / "qrels", tmp_path / "run")[0].split() == ["runid", "all", "last"]


MEASURES = (
    "map",
    "P",
    "recall",
    "ndcg",
    "ndcg_cut",
    "bpref",
    "infAP",
    "Rprec",
    "recip_rank",
    "iprec_at_recall",
    "11pt_avg",
)
SETS = (
    "set_P",
    "set_F",
    "set_map",
    "set_recall",
    "set_relative_P",
    "num_ret",
    "num_rel",
    "num_rel_ret",
    "utility",
    "success",
)
EXPERIMENTAL = ("binG", "G", "ndcg_rel", "Rndcg", "Rprec_mult", "map_cut", "relative_P", "num_nonrel_judged_ret")


@pytest.mark.parametrize("level", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_values_of_every_query_are_those_of_pytrec_eval(tmp_path, level):
    """trec_eval 9's own code, called per query. Scores that only 64 bits tell apart, ties, queries without an answer."""
    names = [f"d{i}" for i in range(25)] + ["é", "Ω"]
    for seed in range(40):
        draw = random.Random(seed)
        queries = [f"q{i}" for i in range(6)]
        qrels = {q: {d: draw.choice([0, 0, 1, 2, 3]) for d in draw.sample(names, draw.randint(1, 15))} for q in queries}
        scores = draw.choice([[0.5, 1.0, 7.25], [1 + i * 1e-9 for i in range(20)], [i / 7 for i in range(50)]])
        run = {q: {d: draw.choice(scores) for d in draw.sample(names, draw.randint(1, 20))} for q in queries[1:]}
        write(tmp_path / "qrels", (f"{q} 0 {d} {g}" for q, judged in qrels.items() for d, g in judged.items()))
        write(tmp_path / "run", (f"{q} Q0 {d} 0 {s!r} t" for q, docs in run.items() for d, s in docs.items()))
        asked = {*MEASURES, *SETS, *EXPERIMENTAL}
        theirs = pytrec_eval.RelevanceEvaluator(qrels, asked, relevance_level=level).evaluate(run)
        flags = [flag for name in sorted(asked) for flag in ("-m", name)]
        stdout, _ = trec_eval("--as", 9, "-q", "-n", f"-l{level}", *flags, tmp_path / "qrels", tmp_path / "run")
        ours = {(q, name): float(value) for name, q, value in (line.split() for line in stdout.splitlines())}
        assert {q for q, _ in ours} == set(theirs)
        for (query, name), value in ours.items():
            # The command prints four decimals.
            assert value == pytest.approx(theirs[query][name], abs=0.5e-4 + 1e-9), (seed, query, name)


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "error: trec_eval: 0 files; expected two, QRELS and RUN."),
        ("-x qrels run", "error: trec_eval: option -x not recognized."),
        ("-m", "error: trec_eval: option -m requires argument."),
        ("-m ndgc qrels run", "error: unknown trec_eval measure 'ndgc'"),
        ("-m rbp --as 9 qrels run", "error: -m rbp: trec_eval 9 has no such measure."),
        ("-m P. qrels run", "error: -m P.: the part after the dot is empty; expected NAME or NAME.PARAMETERS."),
        ("-m P.0 qrels run", "error: -m P.0: cannot read the cutoffs; expected whole numbers of 1 or more"),
        ("-m P.5,x qrels run", "error: -m P.5,x: cannot read the cutoffs"),
        ("-m P.5,5.7 qrels run", "error: -m P.5,5.7: a cutoff is given twice"),
        ("-m iprec_at_recall.-1 qrels run", "error: -m iprec_at_recall.-1: cannot read the parameters"),
        ("-m utility.1,2 qrels run", "error: -m utility.1,2: 2 parameters; expected 4."),
        ("-m utility.1,0,0,1 qrels run", "error: -m utility.1,0,0,1: the fourth parameter needs the size"),
        ("-m ndcg.1 qrels run", "error: -m ndcg.1: cannot read the parameters; expected GRADE=GAIN, commas between."),
        ("-m ndcg.p=1 qrels run", "error: -m ndcg.p=1: cannot read the parameters"),
        ("-m rbp.p=x qrels run", "expected GRADE=GAIN or p=P, commas between."),
        ("-m ndcg.1=2,1=3 qrels run", "error: -m ndcg.1=2,1=3: a parameter is given twice"),
        ("-l 0 qrels run", "error: -l is '0'; expected a whole number of 1 or more."),
        ("-M1.5 qrels run", "error: -M is '1.5'; expected a whole number of 1 or more."),
        (
            "-R nonsense qrels run",
            "error: unknown value of -R 'nonsense'; expected prefs, qrels, qrels_jg, qrels_prefs.",
        ),
        ("-T nonsense qrels run", "error: unknown value of -T 'nonsense'; expected trec_results."),
        ("--as 8 qrels run", "error: unknown value of --as '8'"),
        ("-D0.q9 qrels run", "error: -D: unknown query 'q9'; expected q1."),
        ("-m prefs qrels run", "error: judgments in the format qrels are not enough for prefs_num_prefs_poss"),
        ("-R qrels_jg qrels run", "Hint: -m qrels_jg prints what -R qrels_jg allows."),
        ("nowhere run", "error: nowhere: no such file."),
        ("qrels nowhere", "error: nowhere: no such file."),
        ("qrels other.run", "error: test set 'qrels' and the run share no query id"),
        ("-c qrels other.run", "error: test set 'qrels' and the run share no query id"),
        ("qrels words.run", "error: words.run:1: the score is not a finite number"),
        ("qrels twice.run", "error: twice.run:2: query 'q1' lists document 'd1' twice"),
        ("half.qrels run", "error: half.qrels: query 'q1', document 'd1' has the grade 0.5; expected a whole number"),
        ("-R qrels_jg -m qrels_jg half.qrels run", "error: half.qrels: query 'q1', document 'd1' has the grade 0.5"),
        ("-Z run qrels run", "error: run:1: cannot read the line; expected `query measure mean deviation`"),
        ("-Z z qrels run", "error: z:2: query 'q1', measure 'map' is given twice"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "qrels", ["q1 0 d1 1"])
    write(tmp_path / "half.qrels", ["q1 0 d1 0.5"])
    write(tmp_path / "run", ["q1 Q0 d1 1 1 t"])
    write(tmp_path / "other.run", ["q2 Q0 d1 1 1 t"])
    write(tmp_path / "words.run", ["q1 Q0 d1 1 high t"])
    write(tmp_path / "twice.run", ["q1 Q0 d1 1 2 t", "q1 Q0 d1 2 1 t"])
    write(tmp_path / "z", ["q1 map 0 1", "q1 map 0 1"])
    stdout, stderr = trec_eval(*shlex.split(arguments), code=2)
    assert stdout == ""
    assert message in stderr


def test_everything_wrong_is_said_at_once(tmp_path):
    _, stderr = trec_eval("-l0", "-M0", "-R", "x", "--as", "8", "a", code=2)
    assert stderr.count("error:") == 5
    write(tmp_path / "f", ["q 0 d 1"])
    _, stderr = trec_eval("-m", "nonsense", "-mP.0", "-m", "prefs", tmp_path / "f", tmp_path / "f", code=2)
    assert stderr.count("error:") == 3


def test_the_help_says_every_option():
    stdout, _ = trec_eval("--help")
    assert "trec_eval [OPTIONS] QRELS RUN\n" in stdout
    missing = [option.name for option in OPTIONS if not re.search(rf"--{option.name}\b", stdout)]
    assert not missing
    assert trec_eval("-h") == trec_eval("-q", "--help")


def test_the_version_goes_to_standard_error_as_in_trec_eval():
    stdout, stderr = trec_eval("-v")
    assert stdout == ""
    assert "trec_eval 10.0 and 9.0.8" in stderr
