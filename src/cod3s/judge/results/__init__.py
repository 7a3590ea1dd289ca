"""Analyse collected ratings."""
