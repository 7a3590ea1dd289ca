"""Haystack: rank documents so that the first k mean different things, as a ranker component.

pipeline.add_component("ranker", DifferentRanker(top_k=4))
"""

from haystack import Document, component

import cod3s


@component
class DifferentRanker:
    """Of documents that say the same, the best is kept; their scores count if all have one."""

    def __init__(self, top_k: int = 4, encoder: str = "static") -> None:
        self.top_k, self.encoder = top_k, encoder

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], top_k: int | None = None) -> dict[str, list[Document]]:
        texts = [document.content or "" for document in documents]
        scores = [document.score for document in documents if document.score is not None]
        selection = cod3s.select(
            texts,
            top_k or self.top_k,
            scores=scores if len(scores) == len(documents) else None,
            encoder=self.encoder,
        )
        return {"documents": [documents[chosen.index] for chosen in selection]}
