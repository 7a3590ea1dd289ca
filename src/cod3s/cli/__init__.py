"""The command line: one file per command group. Reads arguments, calls the library, prints."""
