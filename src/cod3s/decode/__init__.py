"""Decoding: a source and a bundle → k answers that mean different things."""
