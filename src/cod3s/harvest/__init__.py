"""Harvest cause and effect pairs from raw text."""
