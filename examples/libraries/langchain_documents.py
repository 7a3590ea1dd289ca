"""LangChain: keep the k retrieved documents that mean different things, as a document compressor.

retriever = ContextualCompressionRetriever(base_compressor=DifferentDocuments(k=4), base_retriever=…)
"""

from collections.abc import Sequence

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document

import cod3s


class DifferentDocuments(BaseDocumentCompressor):
    """Documents come best first, as retrievers return them; of those that say the same, the first is kept."""

    k: int = 4
    encoder: str = "static"

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks = None
    ) -> Sequence[Document]:
        texts = [document.page_content for document in documents]
        selection = cod3s.select(texts, self.k, encoder=self.encoder)
        return [documents[chosen.index] for chosen in selection]
