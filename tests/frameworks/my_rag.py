"""The same five passages in LangChain, LlamaIndex and Haystack, each with a retriever that counts common words."""

PASSAGES = {
    "kb/returns.md": "Return an item within thirty days.",
    "kb/hours.md": "The opening hours are nine to five.",
    "kb/bikes.md": "Rent a bike for a day or an hour.",
    "kb/keys.md": "A lost key costs twenty euros.",
    "kb/theft.md": "Report a stolen bike at once.",
}
START = 7
"""First character of each passage in its file."""


def common_words(query, text):
    return len({*query.lower().split()} & {*text.lower().rstrip(".").split()})


def langchain_documents():
    from langchain_core.documents import Document

    return [
        Document(page_content=text, metadata={"source": source, "start_index": START, "page": 1})
        for source, text in PASSAGES.items()
    ]


def langchain_retriever():
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Words(BaseRetriever):
        documents: list[Document]

        def found(self, query):
            scores = {id(each): common_words(query, each.page_content) for each in self.documents}
            return sorted((each for each in self.documents if scores[id(each)]), key=lambda each: -scores[id(each)])

        def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun):
            return self.found(query)

        async def _aget_relevant_documents(self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun):
            return self.found(query)

    class OnlyAsync(Words):
        def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun):
            raise NotImplementedError

    documents = langchain_documents()
    return Words(documents=documents), OnlyAsync(documents=documents)


def langchain_store():
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class WordVectors(Embeddings):
        words = sorted({word for text in PASSAGES.values() for word in text.lower().rstrip(".").split()})

        def embed_query(self, text):
            return [1.0 + common_words(word, text) for word in self.words]

        def embed_documents(self, texts):
            return [self.embed_query(text) for text in texts]

    store = InMemoryVectorStore(WordVectors())
    store.add_documents(langchain_documents())
    return store


def llama_retriever():
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import Document, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

    class Words(BaseRetriever):
        def __init__(self):
            super().__init__()
            self.nodes = []
            for source, text in PASSAGES.items():
                node = TextNode(text=text, start_char_idx=START, end_char_idx=START + len(text))
                node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(
                    node_id=Document(id_=source, text=text).id_
                )
                self.nodes.append(node)

        def _retrieve(self, query_bundle):
            scored = [
                NodeWithScore(node=node, score=common_words(query_bundle.query_str, node.text)) for node in self.nodes
            ]
            return sorted((each for each in scored if each.score), key=lambda each: -each.score)

    return Words()


def llama_engine():
    from llama_index.core.llms import MockLLM
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.response_synthesizers import Generation

    class Longer(BaseNodePostprocessor):
        """Needs what the framework makes of a query."""

        def _postprocess_nodes(self, nodes, query_bundle=None):
            return [each for each in nodes if common_words(query_bundle.query_str, each.node.text) > 1]

    synthesizer = Generation(llm=MockLLM())
    return RetrieverQueryEngine(llama_retriever(), synthesizer, node_postprocessors=[Longer()])


def haystack_store():
    from haystack import Document
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    store.write_documents(
        [
            Document(content=text, meta={"file_path": source, "split_idx_start": START, "page_number": 1})
            for source, text in PASSAGES.items()
        ]
    )
    return store


def haystack_pipeline():
    from haystack import Pipeline
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever

    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(haystack_store()))
    return pipeline


def haystack_hybrid():
    """Two retrievers of one query, and a joiner."""
    from haystack import Pipeline
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever

    store, pipeline = haystack_store(), Pipeline()
    pipeline.add_component("five", InMemoryBM25Retriever(store, top_k=5))
    pipeline.add_component("one", InMemoryBM25Retriever(store, top_k=1))
    pipeline.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
    pipeline.connect("five", "joiner")
    pipeline.connect("one", "joiner")
    return pipeline


def haystack_two_outputs():
    """Two retrievers of one query, and nothing that joins their documents."""
    from haystack import Pipeline
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever

    store, pipeline = haystack_store(), Pipeline()
    pipeline.add_component("five", InMemoryBM25Retriever(store, top_k=5))
    pipeline.add_component("one", InMemoryBM25Retriever(store, top_k=1))
    return pipeline


MADE = {
    "retriever": lambda: langchain_retriever()[0],
    "only_async": lambda: langchain_retriever()[1],
    "store": langchain_store,
    "nodes": llama_retriever,
    "engine": llama_engine,
    "pipeline": haystack_pipeline,
    "hybrid": haystack_hybrid,
    "two": haystack_two_outputs,
}


def __getattr__(name):
    """An object is made when it is asked for: one process loads one framework."""
    if name in MADE:
        globals()[name] = MADE[name]()
        return globals()[name]
    raise AttributeError(name)
