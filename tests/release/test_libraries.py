"""The components in examples/libraries work inside the real libraries; skipped where a library is absent."""

import importlib.util
from typing import Any

import pytest

from conftest import ROOT

TEXTS = [
    "He called a locksmith.",
    "He phoned a locksmith.",
    "She slept in the car.",
    "She spent the night in the car.",
    "The dog barked all night.",
]
MEANINGS = [{0, 1}, {2, 3}, {4}]


def component(name: str, library: str) -> Any:
    """The module of an example, if its library is installed."""
    pytest.importorskip(library)
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / "libraries" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_one_of_each(texts: list[str]) -> None:
    chosen = {TEXTS.index(text) for text in texts}
    assert len(texts) == 3
    assert all(len(meaning & chosen) == 1 for meaning in MEANINGS), texts


def test_langchain_keeps_documents_that_differ() -> None:
    module = component("langchain_documents", "langchain_core")
    from langchain_core.documents import Document

    documents = [Document(page_content=text, metadata={"number": number}) for number, text in enumerate(TEXTS)]
    kept = module.DifferentDocuments(k=3).compress_documents(documents, "What happened?")
    assert_one_of_each([document.page_content for document in kept])
    assert all(TEXTS[document.metadata["number"]] == document.page_content for document in kept)


def test_llamaindex_keeps_nodes_that_differ() -> None:
    module = component("llamaindex_nodes", "llama_index.core")
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = [NodeWithScore(node=TextNode(text=text), score=1 - n / 10) for n, text in enumerate(TEXTS)]
    kept = module.DifferentNodes(k=3).postprocess_nodes(nodes, query_str="What happened?")
    assert_one_of_each([node.node.get_content() for node in kept])


def test_haystack_ranks_documents_in_a_pipeline() -> None:
    module = component("haystack_ranker", "haystack")
    from haystack import Document, Pipeline

    pipeline = Pipeline()
    pipeline.add_component("ranker", module.DifferentRanker(top_k=3))
    documents = [Document(content=text, score=1 - n / 10) for n, text in enumerate(TEXTS)]
    kept = pipeline.run({"ranker": {"documents": documents}})["ranker"]["documents"]
    assert_one_of_each([document.content for document in kept])
    assert len(pipeline.run({"ranker": {"documents": documents, "top_k": 2}})["ranker"]["documents"]) == 2


def test_dspy_asks_until_predictions_differ() -> None:
    module = component("dspy_different", "dspy")
    import dspy
    from dspy.utils import DummyLM

    answers = [TEXTS[number] for number in (0, 1, 2, 4)]  # the vectors see 2 and 3 as different
    with dspy.context(lm=DummyLM([{"answer": text} for text in answers])):
        result = module.Different("question -> answer", k=3)(question="What happened?")
    assert_one_of_each([prediction.answer for prediction in result.predictions])


def test_distilabel_keeps_generations_that_differ() -> None:
    module = component("distilabel_step", "distilabel")
    from distilabel.pipeline import Pipeline

    step = module.DifferentGenerations(k=3, pipeline=Pipeline(name="p"))
    step.load()
    (rows,) = step.process([{"instruction": "x", "generation": [*TEXTS, None]}])
    assert rows[0]["instruction"] == "x"
    assert_one_of_each(rows[0]["generation"])
