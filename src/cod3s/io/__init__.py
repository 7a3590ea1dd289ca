"""Files: atomic writes, tables of any common format and size, sentences, SQLite, arrays."""
