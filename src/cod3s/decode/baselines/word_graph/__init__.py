"""Which words of a target go with which words of a source: a lexical cause-effect graph of the training pairs."""

from cod3s.decode.baselines.word_graph.store import RelatedWord, WordGraph, open_word_graph

__all__ = ["RelatedWord", "WordGraph", "open_word_graph"]
