"""Generators for models of transformers and for completion servers."""
