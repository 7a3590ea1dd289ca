"""The corpus: raw text becomes cause and effect pairs. Knows nothing about vectors, signatures or models."""
