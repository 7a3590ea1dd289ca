"""The ways to select k of n candidates."""
