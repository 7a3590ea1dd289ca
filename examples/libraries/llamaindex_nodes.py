"""LlamaIndex: keep the k retrieved nodes that mean different things, as a node postprocessor.

engine = index.as_query_engine(similarity_top_k=20, node_postprocessors=[DifferentNodes(k=4)])
"""

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

import cod3s


class DifferentNodes(BaseNodePostprocessor):
    """Scores of the retriever decide between nodes that differ about as much."""

    k: int = 4
    encoder: str = "static"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        texts = [node.node.get_content() for node in nodes]
        scores = [node.score for node in nodes if node.score is not None]
        selection = cod3s.select(
            texts, self.k, scores=scores if len(scores) == len(nodes) else None, encoder=self.encoder
        )
        return [nodes[chosen.index] for chosen in selection]
