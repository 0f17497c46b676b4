"""An `InformationRetrievalEvaluator` for the training of sentence-transformers, with this package's measures.

    from cranfield.compat.sentence_transformers import InformationRetrievalEvaluator

Arguments, keys and values are those of the class of that name in sentence-transformers, which it extends: ties fall by ascending
document id, relevance is binary, MAP@k divides by the smaller of k and the number of relevant documents. No CSV file is written
unless `write_csv=True`.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import trange

from cranfield.app.evaluate import evaluate
from cranfield.base.errors import UsageError
from cranfield.base.words import count_noun
from cranfield.evaluation.values import Evaluation
from cranfield.measures import Measure, parse, parse_all
from cranfield.model import Query, TestSet
from cranfield.model.arrays import DocumentIds

try:
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator as _Original
except ImportError:  # before version 6
    from sentence_transformers.evaluation import InformationRetrievalEvaluator as _Original

logger = logging.getLogger(__name__)

KEYS = {
    "accuracy@k": ("accuracy_at_k", "Success@{}"),
    "precision@k": ("precision_recall_at_k", "P@{}"),
    "recall@k": ("precision_recall_at_k", "R@{}"),
    "ndcg@k": ("ndcg_at_k", "nDCG@{}"),
    "mrr@k": ("mrr_at_k", "RR@{}"),
    "map@k": ("map_at_k", "AP(divisor='reachable')@{}"),
}
"""Key of a result, with the argument of its cutoffs and the spelling of the measure here."""

Best = tuple[NDArray[np.float64], NDArray[np.int64]]
"""float64[Q, K] scores and int64[Q, K] positions in the corpus, of the best K documents of each query."""


class InformationRetrievalEvaluator(_Original):  # type: ignore[misc,unused-ignore]
    """Scores a model during its training.

    Attributes:
        evaluations: by name of the score function, the `Evaluation` of the last call, with the values of each query: two of
            them can be given to `cranfield.compare`.
    """

    def __init__(
        self,
        queries: Mapping[str, Any],
        corpus: Mapping[str, Any],
        relevant_docs: Mapping[str, Any],
        *args: Any,
        measures: Sequence[str | Measure] | str = (),
        write_csv: bool = False,
        **kwargs: Any,
    ) -> None:
        """Take queries, documents and judgments.

        Args:
            queries: query id to text.
            corpus: document id to text.
            relevant_docs: query id to the ids of its relevant documents; or, with grades for `measures`, to a mapping of
                document id to grade, of which 1 or more is relevant. A query without a relevant document is left out.
            args: as those of sentence-transformers.
            measures: more measures, any spelling: `["nDCG@10", "R@1000", "RBP"]`. Each is a key `<score function>_<spelling>`.
                One without a cutoff looks at as many documents as the deepest of all cutoffs.
            write_csv: append the results of each call to a CSV file in the output folder.
            kwargs: as those of sentence-transformers.

        Raises:
            UsageError: a measure that is none, no query with a relevant document, or two ids with one spelling.
        """
        written = [measures] if isinstance(measures, str | Measure) else list(measures)
        parse_all([*map(str, written)])  # names every bad one
        self._more = {str(measure): parse(measure) if isinstance(measure, str) else measure for measure in written}
        graded = {query: docs for query, docs in relevant_docs.items() if isinstance(docs, Mapping)}
        relevant = {
            query: {doc for doc, grade in graded[query].items() if grade >= 1} if query in graded else docs
            for query, docs in relevant_docs.items()
        }
        super().__init__(queries, corpus, relevant, *args, write_csv=write_csv, **kwargs)
        if not self.queries_ids:
            raise UsageError("no query has a relevant document", expected="ids of queries in relevant_docs")
        names = {doc_id: str(doc_id) for doc_id in self.corpus_ids}
        if len({*names.values()}) < len(names) or len({*map(str, self.queries_ids)}) < len(self.queries_ids):
            raise UsageError(
                "two ids are the same as text", expected="ids that differ as text, all text or all numbers"
            )
        self._documents = DocumentIds.of([*names.values()])
        order = sorted(range(len(self.corpus_ids)), key=self.corpus_ids.__getitem__)
        self._places = np.empty(len(order), dtype=np.int64)
        """Place of each document among the ascending ids, which orders ties."""
        self._places[order] = np.arange(len(order))
        self._by_id = torch.tensor(order)

        taken = {*names.values()}
        absent = {doc for query in self.queries_ids for doc in relevant[query] if doc not in names}
        if absent:
            missing = count_noun(len(absent), "relevant documents")
            logger.warning("not in the corpus, and counted as not found: %s", missing)
        names |= {doc: str(doc) if str(doc) not in taken else repr(doc) for doc in absent}
        self._testset = self._judged(names, relevant)
        self._graded = self._judged(names, {**relevant, **graded}) if graded else self._testset
        self.evaluations: dict[str, Evaluation] = {}

    def _judged(self, names: Mapping[Any, str], judged: Mapping[Any, Any]) -> TestSet:
        grades = {
            str(query): {
                names.get(doc, str(doc)): float(judged[query][doc]) if isinstance(judged[query], Mapping) else 1.0
                for doc in judged[query]
            }
            for query in self.queries_ids
        }
        return TestSet(self.name or "training", tuple(map(Query, grades)), grades=grades)

    def compute_all_metrics(
        self, model: Any, corpus_model: Any = None, corpus_embeddings: Any = None, output_path: str | None = None
    ) -> dict[str, dict[str, dict[int, float]]]:
        """Score a model: name of the score function to name of the measure to cutoff to value."""
        cutoffs = itertools.chain.from_iterable(getattr(self, argument) for argument, _ in KEYS.values())
        own = (measure.cutoff for measure in self._more.values())
        deepest = max([*cutoffs, *(cutoff for cutoff in own if isinstance(cutoff, int))])
        encoded = self.embed_inputs(
            model, self.queries, encode_fn_name="query", prompt_name=self.query_prompt_name, prompt=self.query_prompt
        )
        best: dict[str, Best] = {}
        for start in trange(
            0, len(self.corpus), self.corpus_chunk_size, desc="Corpus Chunks", disable=not self.show_progress_bar
        ):
            end = min(start + self.corpus_chunk_size, len(self.corpus))
            documents = (
                self.embed_inputs(
                    model if corpus_model is None else corpus_model,
                    self.corpus[start:end],
                    encode_fn_name="document",
                    prompt_name=self.corpus_prompt_name,
                    prompt=self.corpus_prompt,
                )
                if corpus_embeddings is None
                else corpus_embeddings[start:end]
            )
            for name, score in self.score_functions.items():
                found = self._best(score(encoded, documents), start, deepest)
                best[name] = self._merged(best[name], found, deepest) if name in best else found
        logger.info("Queries: %d\nCorpus: %d", len(self.queries), len(self.corpus))
        scores = {name: self._scored(name, *found) for name, found in best.items()}
        if self.write_predictions and output_path is not None:
            for name, found in best.items():
                self._write_predictions(Path(output_path), name, *found)
        for name in self.score_function_names:
            logger.info("Score-Function: %s", name)
            self.output_scores(scores[name])
        return scores

    compute_metrices = compute_all_metrics

    def _best(self, similarity: torch.Tensor, start: int, depth: int) -> Best:
        """The best documents of one chunk of the corpus, which begins at a position."""
        depth = min(depth, similarity.shape[1])
        values, positions = torch.topk(similarity, depth, dim=1)
        # Where documents tie at the last rank, `topk` takes any of them.
        tied = (similarity >= values[:, -1:]).sum(dim=1) > depth
        if tied.any():
            inside = self._by_id[(self._by_id >= start) & (self._by_id < start + similarity.shape[1])] - start
            inside = inside.to(similarity.device)
            ordered, places = torch.sort(similarity[tied][:, inside], dim=1, descending=True, stable=True)
            values[tied], positions[tied] = ordered[:, :depth], inside[places[:, :depth]]
        return self._ordered(values.double().cpu().numpy(), positions.cpu().numpy() + start)

    def _merged(self, former: Best, latter: Best, depth: int) -> Best:
        scores, positions = (np.concatenate(pair, axis=1) for pair in zip(former, latter, strict=True))
        scores, positions = self._ordered(scores, positions)
        return scores[:, :depth], positions[:, :depth]

    def _ordered(self, scores: NDArray[np.float64], positions: NDArray[np.int64]) -> Best:
        order = np.lexsort((self._places[positions], -scores), axis=-1)
        return np.take_along_axis(scores, order, axis=1), np.take_along_axis(positions, order, axis=1)

    def _scored(
        self, name: str, scores: NDArray[np.float64], positions: NDArray[np.int64]
    ) -> dict[str, dict[int, float]]:
        bad = int((~np.isfinite(scores)).sum())
        if bad:
            logger.warning("%s: %d of %d scores are no finite numbers", name, bad, scores.size)
        spelled = [spelling.format(k) for argument, spelling in KEYS.values() for k in getattr(self, argument)]
        arrays: dict[str, Any] = {"ids": positions, "doc_ids": self._documents, "name": name}
        found = evaluate(self._testset, measures=spelled, **arrays)
        metrics = {
            key: {k: found.mean(spelling.format(k)) or 0.0 for k in getattr(self, argument)}
            for key, (argument, spelling) in KEYS.items()
        }
        if self._more:
            found = evaluate(self._graded, measures=[*self._more.values()], **arrays)
            for written, measure in self._more.items():
                mean = found.summaries[measure].mean
                if mean is None:
                    logger.warning("%s: no query has a value of %s", name, written)
                else:
                    metrics[written] = {0: float(mean)}
        self.evaluations[name] = found
        return metrics

    def _write_predictions(
        self, folder: Path, name: str, scores: NDArray[np.float64], positions: NDArray[np.int64]
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self.predictions_file.replace(".jsonl", f"_{name}.jsonl")
        with path.open("w", encoding="utf-8") as file:
            for query_id, text, values, places in zip(
                self.queries_ids, self.queries, scores.tolist(), positions.tolist(), strict=True
            ):
                results = [
                    {"corpus_id": self.corpus_ids[place], "score": value}
                    for place, value in zip(places, values, strict=True)
                ]
                file.write(json.dumps({"query_id": query_id, "query": text, "results": results}) + "\n")
