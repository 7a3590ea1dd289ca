"""Generators that ask other people's models."""
