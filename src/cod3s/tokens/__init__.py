"""Tokens: text pieces, role tags and signature tokens."""
