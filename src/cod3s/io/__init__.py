"""Files: atomic writes, tables of any common format, sentences, local and remote locations."""
