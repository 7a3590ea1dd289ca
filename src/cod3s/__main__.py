"""`cod3s` and `python -m cod3s`: the command line. Ctrl-C ends it quietly, even while it starts."""

import sys


def main() -> None:
    """Run the command line, which is imported here so that Ctrl-C also works during the import."""
    try:
        from cod3s.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
