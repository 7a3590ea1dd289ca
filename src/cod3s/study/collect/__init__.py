"""Collect ratings: the server, its pages and the store."""
