"""`python -m cod3s` is the command line."""

from cod3s.cli.app import main

main()
