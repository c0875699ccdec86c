"""`agentnb diff`: where two recorded runs diverged, what led to it, and all later differences."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from agentnb.board.masking import find_secret_word, mask_value
from agentnb.board.values import ABSENT
from agentnb.cli.output import print_json
from agentnb.expressions.paths import parse_path

if TYPE_CHECKING:
    from agentnb.analysis.step_differences import Difference


def run_diff(args: argparse.Namespace) -> int:
    """Print the comparison of two runs; return 0 if they do not differ, else 1."""
    from agentnb.analysis.compare import compare
    from agentnb.recordings.formats import open as open_run

    comparison = compare(open_run(args.a, args.run_a), open_run(args.b, args.run_b))
    if args.output is not None:
        comparison.draw().save(args.output)
    divergence = comparison.first_divergence
    if args.json:
        slices = [None if part is None else part.to_frame() for part in comparison.slices]
        print_json(
            {
                "first_divergence": None if divergence is None else _to_plain(divergence),
                "slices": dict(zip("ab", slices, strict=True)),
                "steps": comparison.to_frame(),
                "differences": [_to_plain(each) for each in comparison.differences],
            }
        )
    else:
        print("\n".join(comparison.lines()))
        if args.output is not None:
            print(f"{args.output}: both routes")
    return 0 if divergence is None else 1


def _to_plain(difference: Difference) -> dict[str, Any]:
    """Return a difference as a mapping, without secrets; a missing value is omitted."""
    word = find_secret_word(parse_path(difference.path))
    values = {
        name: mask_value(value, word)
        for name, value in (("a", difference.a), ("b", difference.b))
        if value is not ABSENT
    }
    position = {name: getattr(difference, name) for name in ("step_a", "step_b", "node", "path")}
    return {**position, **values, "reason": str(difference)}


__all__ = ["run_diff"]
