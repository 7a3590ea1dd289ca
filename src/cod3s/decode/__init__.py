"""Decoding: k answers that mean different things, in the two stages of the paper's section 3."""
