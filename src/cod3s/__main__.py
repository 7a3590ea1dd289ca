"""`cod3s` and `python -m cod3s`: the command line, which Ctrl-C ends in silence from the first moment on."""

import sys


def main() -> None:
    """Run the command line; it is imported in here, because Ctrl-C may come while it is."""
    try:
        from cod3s.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
