"""Traces of the real instrumentation: what LangChain, LlamaIndex, Langfuse and the OpenTelemetry SDK record of retrievals.

`python tests/frameworks/traced.py FOLDER` writes them as the OpenTelemetry Collector does (`otel.jsonl`), and the observations of
Langfuse by the names of its exports (`langfuse.jsonl`, `langfuse.json`). With the address of a server of Phoenix, it sends the
spans there and writes what its client exports (`phoenix.jsonl`, `phoenix.json`, `phoenix.parquet`): that needs `arize-phoenix`.
The files in tests/unit/formats/traces were made so, with Phoenix 20.26.1.
"""

import base64
import contextlib
import itertools
import json
import random
import sys
import time
import warnings
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langfuse import Langfuse
from llama_index.core.retrievers import BaseRetriever as NodeRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from openinference.instrumentation.langchain import LangChainInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import IdGenerator, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

DOCUMENTS = [
    Document("Bikes are rented at the desk.", id="c1", metadata={"source": "kb/bikes.md", "start_index": 120}),
    Document("Lost keys: call the desk. Über Nacht 🔑.", id="c2", metadata={"source": "kb/keys.md"}),
]
QUERIES = ("rent a bike", "lost key", "key of jane.roe@example.org")


class _Ids(IdGenerator):
    """The same ids each time."""

    def __init__(self) -> None:
        self._random = random.Random(0)

    def generate_trace_id(self) -> int:
        return self._random.getrandbits(128)

    def generate_span_id(self) -> int:
        return self._random.getrandbits(64)


class _Retriever(BaseRetriever):
    """Finds all documents, nothing, or raises."""

    def _get_relevant_documents(self, query, *, run_manager):
        if query == "down":
            raise ConnectionError("the index at 10.0.0.7 is down")
        return [] if query == "nothing" else DOCUMENTS


class _Nodes(NodeRetriever):
    def _retrieve(self, query_bundle):
        nodes = [
            TextNode(id_="n1", text="Node one", metadata={"file_path": "kb/one.md"}),
            TextNode(id_="n2", text="Node two"),
        ]
        return [NodeWithScore(node=node, score=score) for node, score in zip(nodes, (0.9, None), strict=True)]


def record():
    """The spans of all of it, in the order in which they ended."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(id_generator=_Ids())
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for instrumentor in (LangChainInstrumentor(), LlamaIndexInstrumentor()):
        instrumentor.instrument(tracer_provider=provider)
    try:
        handbook = _Retriever(name="handbook")
        for text in QUERIES:
            (RunnableLambda(str) | handbook).invoke(text)
        handbook.invoke("nothing")
        with contextlib.suppress(ConnectionError):
            handbook.invoke("down")
        _Nodes().retrieve("node")
    finally:
        LangChainInstrumentor().uninstrument()
        LlamaIndexInstrumentor().uninstrument()
    _by_hand(provider.get_tracer("by-hand"))
    langfuse = Langfuse(
        public_key="pk-lf-made",
        secret_key="sk-lf-made",
        base_url="http://127.0.0.1:9",
        tracer_provider=provider,
        span_exporter=InMemorySpanExporter(),
    )
    with langfuse.start_as_current_observation(as_type="span", name="ask", input={"question": "rent a bike, please"}):
        with langfuse.start_as_current_observation(
            as_type="retriever", name="wiki", input={"query": "rent a bike"}
        ) as seen:
            seen.update(output=[{"id": "w1", "content": "Wiki one", "score": 0.5}, {"id": "w2", "content": "Wiki two"}])
        with langfuse.start_as_current_observation(as_type="generation", name="answer", input="rent a bike"):
            pass
    return exporter.get_finished_spans()


def _by_hand(tracer) -> None:
    """An agent that searches twice and reranks, by OpenInference; and a search by the convention of OpenTelemetry."""
    kind = "openinference.span.kind"
    with tracer.start_as_current_span(
        "agent", attributes={kind: "AGENT", "input.value": "Where do I rent a bike at night?"}
    ):
        for text, ids in (("rent bike", ("a", "b")), ("rent bike night", ("c", "a"))):
            found = {
                f"retrieval.documents.{rank}.document.{name}": value
                for rank, doc_id in enumerate(ids)
                for name, value in {
                    "id": doc_id,
                    "score": 1.0 - rank / 4,
                    "metadata": json.dumps({"rank": rank}),
                }.items()
            }
            with tracer.start_as_current_span("search", attributes={kind: "RETRIEVER", "input.value": text, **found}):
                pass
        lists = {"input": ("a", "b", "c"), "output": ("c", "a")}
        found = {
            f"reranker.{name}_documents.{rank}.document.id": doc_id
            for name, ids in lists.items()
            for rank, doc_id in enumerate(ids)
        }
        with tracer.start_as_current_span(
            "rerank", attributes={kind: "RERANKER", "reranker.query": "rent bike night", "reranker.top_k": 2, **found}
        ):
            pass
    by_convention = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "kb",
        "gen_ai.retrieval.query.text": "rent a bike",
        "gen_ai.retrieval.documents": json.dumps(
            [{"id": "kb/bikes.md", "score": 0.5}, {"id": "kb/keys.md", "score": 0.25}]
        ),
    }
    with tracer.start_as_current_span("retrieval kb", attributes=by_convention):
        pass


def requests(spans, size=5):
    """Requests of OTLP in JSON, some spans each: ids are hexadecimal there."""
    for batch in itertools.batched(spans, size) if hasattr(itertools, "batched") else _batches(spans, size):
        request = MessageToDict(encode_spans(batch))
        for span in _spans_in(request):
            for name in {"traceId", "spanId", "parentSpanId"} & span.keys():
                span[name] = base64.b64decode(span[name]).hex()
        yield request


def _batches(spans, size):
    return (spans[at : at + size] for at in range(0, len(spans), size))


def _spans_in(request):
    return (span for part in request["resourceSpans"] for scope in part["scopeSpans"] for span in scope["spans"])


def observations(spans):
    """The spans of Langfuse's SDK as its exports name their fields: payloads are text."""
    prefix = "langfuse.observation."
    for span in spans:
        if f"{prefix}type" in span.attributes:
            moments = [
                time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ns // 10**9)) for ns in (span.start_time, span.end_time)
            ]
            yield {
                "id": f"{span.context.span_id:016x}",
                "trace_id": f"{span.context.trace_id:032x}",
                "parent_observation_id": None if span.parent is None else f"{span.parent.span_id:016x}",
                "type": span.attributes[f"{prefix}type"].upper(),
                "name": span.name,
                "start_time": f"{moments[0]}.{span.start_time // 1000 % 10**6:06d}",
                "end_time": f"{moments[1]}.{span.end_time // 1000 % 10**6:06d}",
                "level": "DEFAULT",
                "status_message": "",
                "input": span.attributes.get(f"{prefix}input"),
                "output": span.attributes.get(f"{prefix}output"),
                "metadata": {},
            }


def _of_api(observation):
    """The same as the API of Langfuse gives it: names in camel case, payloads as values."""
    names = {"trace_id": "traceId", "parent_observation_id": "parentObservationId", "start_time": "startTime"}
    moved = {names.get(name, name): value for name, value in observation.items()}
    return {**moved, **{name: _value(moved[name]) for name in ("input", "output")}}


def _value(text):
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def _export_phoenix(spans, address, folder) -> None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from phoenix.client import Client

    OTLPSpanExporter(f"{address}/v1/traces").export(spans)
    time.sleep(5)
    warnings.simplefilter("ignore")
    client = Client(base_url=address)
    frame = client.spans.get_spans_dataframe()
    (folder / "phoenix.jsonl").write_text(_anywhere(frame.to_json(orient="records", lines=True)))
    frame["status_message"] = frame["status_message"].map(_anywhere)
    frame.drop(columns="events").to_parquet(folder / "phoenix.parquet")
    found = client.spans.get_spans(project_identifier="default")
    (folder / "phoenix.json").write_text(_anywhere(json.dumps(found, default=str)) + "\n")


def _anywhere(text):
    """A text with a stack trace, without the folders of this machine."""
    for folder in (sys.prefix, str(Path(__file__).parent)):
        text = text.replace(folder, "").replace(folder.replace("/", r"\/"), "")
    return text


def main(folder, address=None) -> None:
    """Write the files."""
    spans = record()
    folder = Path(folder)
    (folder / "otel.jsonl").write_text(_anywhere("".join(json.dumps(each) + "\n" for each in requests(spans))))
    seen = list(observations(spans))
    (folder / "langfuse.jsonl").write_text("".join(json.dumps(each) + "\n" for each in seen))
    (folder / "langfuse.json").write_text(
        json.dumps({"data": [_of_api(each) for each in seen], "meta": {"page": 1}}) + "\n"
    )
    if address is not None:
        _export_phoenix(spans, address, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
