"""Corpora: raw text → causal pairs → filtered, split, signed training shards. Each file holds one step."""
