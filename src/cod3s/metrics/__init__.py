"""Figures of sets of answers, from their texts, vectors, signatures and scores."""
