"""Entry point of `python -m agentnb`, the same as the command `agentnb`."""

from agentnb.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
