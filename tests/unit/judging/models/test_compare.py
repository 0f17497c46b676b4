"""Models against people: agreement, the order of systems, corrected means, and what is not said."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from sklearn.metrics import cohen_kappa_score

from cranfield.base.errors import UsageError
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import Action, RaterKind, Role
from cranfield.books.store.store import Store, open_store
from cranfield.books.store.values import ImportedJudgment
from cranfield.judging.reports.model_raters import model_document
from cranfield.judging.use_cases import ModelReport, model_report
from cranfield.reporting import render

DEPTH = 3
N_QUERIES = 20
MODEL = "openai:small relevance-1"


@dataclass(frozen=True)
class Made:
    store: Store
    folder: Path
    truth: dict[tuple[str, str], float]
    model: dict[tuple[str, str], float]

    def report(self, book: str = "whole", *, runs: bool = False, sample: str = "") -> ModelReport:
        names = ("good", "bad") if runs else ()
        return model_report(self.store, book, [self.folder / f"{name}.run" for name in names], sample=sample)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Books in which people judged everything, every second query, the best documents, or ten documents."""
    folder = tmp_path_factory.mktemp("compare")
    store = open_store(folder / "books.db")
    person = store.people.add("ann", Role.RATER, RaterKind.PERSON)
    model = store.people.add(MODEL, Role.RATER, RaterKind.MODEL)
    store.people.set_settings(model.id, {"model": "openai:small", "prompt": "relevance-1"})
    rng = random.Random(14)
    queries = [f"q{n}" for n in range(N_QUERIES)]
    keys = [(query, f"d{n}") for query in queries for n in range(DEPTH)]
    truth = {key: float(rng.choice((0, 0, 1, 2, 3))) for key in keys}
    rated = {key: min(3.0, max(0.0, grade + rng.choice((-1, 0, 0, 0, 1, 1)))) for key, grade in truth.items()}
    chosen = {
        "whole": keys,
        "sample": [key for key in keys if int(key[0][1:]) % 2 == 0],
        "best": [key for key in keys if rated[key] == 3],
        "few": keys[: 3 * DEPTH],
    }
    for name, judged in chosen.items():
        items = tuple(PooledItem(query=query, doc=doc) for query, doc in keys)
        pool = Pool(
            name=name,
            method="depth",
            depth=DEPTH,
            runs=(PooledRun(name="r", digest="d"),),
            queries=tuple(PooledQuery(id=query, text=query) for query in queries),
            items=items,
        )
        book = store.books.create(name, pool, BookSettings())
        ids = {(item.query, item.doc): item.id for item in store.reading.items(book.id)}
        rows = [(model.id, key, rated[key]) for key in keys] + [(person.id, key, truth[key]) for key in judged]
        store.log.import_many(
            book.id,
            [
                ImportedJudgment(ids[key], account, f"{account} {ids[key]}", grade, action=Action.GRADE)
                for account, key, grade in rows
            ],
        )
    for name, sign in (("good", -1), ("bad", 1)):
        lines = []
        for query in queries:
            docs = sorted((f"d{n}" for n in range(DEPTH)), key=lambda doc: (sign * truth[query, doc], doc))
            lines += [f"{query} Q0 {doc} {rank} {10 - rank} {name}\n" for rank, doc in enumerate(docs, 1)]
        (folder / f"{name}.run").write_text("".join(lines))
    yield Made(store, folder, truth, rated)
    store.close()


def test_kappa_is_that_of_scikit_learn_and_the_matrix_counts_pairs(made: Made) -> None:
    (model,) = made.report().models
    assert model.agreement is not None
    people, rated = list(made.truth.values()), [made.model[key] for key in made.truth]
    for name, weights in (("cohen", None), ("cohen-quadratic", "quadratic")):
        expected = cohen_kappa_score(people, rated, weights=weights)
        assert model.agreement.coefficients[name].value == pytest.approx(expected, abs=1e-9)
    assert model.confusion is not None
    assert model.confusion.n == model.n_pairs == N_QUERIES * DEPTH
    assert model.bias == pytest.approx((sum(rated) - sum(people)) / len(people))


def test_people_who_give_one_grade_only_are_named(made: Made) -> None:
    report = made.report()
    (model,) = report.models
    assert model.confusion is not None
    assert "cannot show" not in render(model_document(report), "text")
    counts = tuple(row if grade == 2 else (0, 0, 0, 0) for grade, row in enumerate(model.confusion.counts))
    constant = replace(model, confusion=replace(model.confusion, counts=counts))
    text = render(model_document(replace(report, models=(constant,))), "text")
    assert "people gave every document the grade 2, so agreement cannot be measured" in text


def test_under_50_pairs_there_is_no_coefficient(made: Made) -> None:
    report = made.report("few")
    assert report.models[0].agreement is None
    text = render(model_document(report), "text")
    assert "Agreement: insufficient data (9 pairs; at least 50 are needed)." in text
    assert "kappa" not in text


def test_the_order_of_systems_is_compared_on_the_same_documents(made: Made) -> None:
    (order,) = made.report(runs=True).orders
    assert order.systems == ("good", "bad")
    assert order.by_people[0] > order.by_people[1]
    assert order.tau == 1.0
    assert "with 2 systems it can take only a few values" in render(model_document(made.report(runs=True)), "text")
    (part,) = made.report("few", runs=True).orders
    assert part.n_queries == 3


def test_without_a_declared_sample_nothing_is_corrected(made: Made) -> None:
    report = made.report("sample", runs=True)
    assert report.corrected == ()
    assert "it is unknown whether people judged a random sample" in " ".join(
        render(model_document(report), "text").split()
    )


def test_means_over_queries_are_corrected_towards_the_people(made: Made) -> None:
    report = made.report("sample", runs=True, sample="queries")
    by_quantity = {row.quantity: row.mean for row in report.corrected}
    assert set(by_quantity) == {
        "mean grade of a query",
        "nDCG@10 of good",
        "nDCG@10 of bad",
        "nDCG@10: bad minus good",
    }
    grade = by_quantity["mean grade of a query"]
    truth = sum(made.truth.values()) / len(made.truth)
    assert (grade.n, grade.n_all) == (10, 20)
    assert abs(grade.estimate - truth) < abs(grade.prediction_mean - truth)
    assert grade.ci_low < truth < grade.ci_high
    assert grade.se < grade.label_se
    assert all(row.is_valid for row in report.corrected)


def test_the_mean_grade_of_documents_is_corrected(made: Made) -> None:
    (row,) = made.report("sample", sample="items").corrected
    assert (row.mean.n, row.mean.n_all, row.unit) == (10 * DEPTH, N_QUERIES * DEPTH, "documents")


def test_a_sample_that_is_not_random_is_said_to_make_it_invalid(made: Made) -> None:
    report = made.report("best", sample="items")
    assert not report.corrected[0].is_valid
    text = " ".join(render(model_document(report), "text").split())
    assert "not valid. The documents that people judged are not a random sample" in text
    assert '"is_valid": false' in render(model_document(report), "json")


def test_every_form_of_the_report_renders(made: Made) -> None:
    document = model_document(made.report("sample", runs=True, sample="queries"))
    for form in ("text", "markdown", "json", "csv"):
        assert MODEL in render(document, form)


def test_an_unknown_sample_is_named(made: Made) -> None:
    with pytest.raises(UsageError, match="queries or items"):
        made.report(sample="pages")
