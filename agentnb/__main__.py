"""__main__: `python -m agentnb` is the command `agentnb`."""

from agentnb.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
