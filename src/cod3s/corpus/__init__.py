"""Corpora: raw pairs → filtered, split, signed training shards. Each file holds one step of that way."""
