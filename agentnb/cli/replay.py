"""`agentnb replay`: replay goldens with a recipe."""

from __future__ import annotations

import argparse

from agentnb.cli.output import print_json


def replay_command(args: argparse.Namespace) -> int:
    """Replay goldens with recipes, without making calls; return 1 if one differs."""
    from agentnb.cli.python_objects import load_recipe
    from agentnb.testing.goldens import USUAL, list_goldens, replay_golden, replay_goldens

    recipe = load_recipe(args.file, args.allow)
    holds = tuple(args.holds) or USUAL
    if args.json:
        frame = replay_goldens(args.goldens, recipe, holds)
        holds_all = len(frame) > 0 and bool(frame["ok"].all())
        print_json({"ok": holds_all, "goldens": frame})
        return 0 if holds_all else 1
    goldens = list_goldens(args.goldens)
    reports = [replay_golden(recipe, golden, holds) for golden in goldens]
    for report in reports:
        print(report)
    if not reports:
        print(f"no goldens in {', '.join(args.goldens)}")
    return 0 if reports and all(report.ok for report in reports) else 1


__all__ = ["replay_command"]
