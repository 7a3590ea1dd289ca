"""Generators for transformers models and for completion servers."""
