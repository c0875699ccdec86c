"""`agentnb replay`: replay goldens with a recipe."""

from __future__ import annotations

import argparse

from agentnb.cli.output import print_json


def replay_command(args: argparse.Namespace) -> int:
    """Replay goldens with recipes, no call goes out; return 1 if one differs."""
    from agentnb.cli.python_objects import load_recipe
    from agentnb.testing.goldens import USUAL, replay_golden, replay_goldens

    recipe = load_recipe(args.file, args.allow)
    holds = tuple(args.holds) or USUAL
    if args.json:
        frame = replay_goldens(args.goldens, recipe, holds)
        print_json({"ok": bool(frame["ok"].all()), "goldens": frame})
        return 0 if frame["ok"].all() else 1
    reports = [replay_golden(recipe, golden, holds) for golden in args.goldens]
    for found in reports:
        print(found)
    return 0 if all(found.ok for found in reports) else 1


__all__ = ["replay_command"]
