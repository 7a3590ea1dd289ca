"""Fit a critic: how plausible is a target as an answer to a source?"""
