"""Metrics: what a set of answers is worth. Texts, vectors and signatures in, figures out; reads no files."""
