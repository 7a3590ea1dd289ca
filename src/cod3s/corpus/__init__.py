"""Corpora: from files of pairs to sifted, split and signed training shards."""
