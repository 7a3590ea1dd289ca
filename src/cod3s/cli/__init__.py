"""The command line, with a file per command group. Reads arguments, calls the library, prints."""
