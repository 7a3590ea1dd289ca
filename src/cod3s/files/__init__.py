"""Files: atomic writes, tables of any common format, and streams of sentences."""
