"""The explorer: a bundle served as a JSON API and a page; and what the server of a study shares with it."""
