"""Masked values: values that were masked when a run was saved, and are supplied again before it is resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentnb.board.masking import register_secrets
from agentnb.board.paths import APPEND, SET, Path, apply_change, get_at
from agentnb.board.values import ATOMS, FrozenList, FrozenRecord, freeze
from agentnb.engine.core.history import Checkpoint, History
from agentnb.expressions.paths import format_path
from agentnb.secrets import Masked

if TYPE_CHECKING:
    from agentnb.engine.core.run import Run


def iter_masks(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of masks inside a frozen value."""
    if isinstance(value, Masked):
        yield path
    if type(value) in ATOMS:
        return
    if isinstance(value, FrozenRecord):
        value = value.parts
    if isinstance(value, dict):
        for key, item in value.items():
            yield from iter_masks(item, (*path, key))
    elif isinstance(value, FrozenList | tuple) and not getattr(value, "flat", False):
        for index, item in enumerate(value):
            yield from iter_masks(item, (*path, index))


def find_masked_paths(run: Run) -> list[str]:
    """Return the board paths, in all open scopes, at which a mask replaces a value."""
    if not run.has_masked_values:
        return []
    scopes = {frame.scope.id: frame.scope for frame in run.frames.values()}
    paths = [format_path(path) for scope in scopes.values() for path in iter_masks(dict(scope.data))]
    return list(dict.fromkeys(paths))


def fill(run: Run, values: Mapping[str, Any]) -> None:
    """Replace the masks at some paths (dotted text) by values, everywhere in the run."""
    from agentnb.engine.core.time_travel import restore

    frozen = {text: freeze(value) for text, value in values.items()}
    for text, value in frozen.items():
        register_secrets(value, text.rpartition(".")[2], run.tables.secrets)
    histories = {id(history): history for chain, _ in [*run.abandoned_branches, (run.chain, 0)] for history in chain}
    for history in histories.values():
        _fill_rows(history, frozen)
        history.checkpoints = [_fill_checkpoint(checkpoint, frozen) for checkpoint in history.checkpoints]
        history.restored_state = None
    run.inputs = _fill_value(run.inputs, (), frozen)
    run.tables.frames[:] = [row if row.inputs is None else row._replace(inputs=_fill_value(row.inputs, (), frozen))
                            for row in run.tables.frames]  # fmt: skip
    restore(run, run.position)


def _fill_rows(history: History, values: Mapping[str, Any]) -> None:
    codes = history.tables.codes
    for row, code in enumerate(history.write_codes):
        path, old = codes[code >> 2][1], history.old_values[row]
        written_path = path
        if code & 3 == APPEND:
            old_value = get_at(old, path[1:])
            written_path = (*path, len(old_value) if isinstance(old_value, FrozenList) else 0)
        history.new_values[row] = _fill_value(history.new_values[row], written_path, values)
        history.old_values[row] = _fill_value(old, path[:1], values)


def _fill_checkpoint(checkpoint: Checkpoint, values: Mapping[str, Any]) -> Checkpoint:
    data = {scope: {key: _fill_value(value, (key,), values) for key, value in held.items()}
            for scope, held in checkpoint.data.items()}  # fmt: skip
    return checkpoint._replace(data=data)


def _fill_value(value: Any, path: Path, values: Mapping[str, Any]) -> Any:
    if type(value) in ATOMS:  # masks have a class of their own
        return value
    for masked_path in list(iter_masks(value, path)):
        text = format_path(masked_path)
        if text in values:
            value = apply_change(value, masked_path[len(path) :], SET, values[text], masked_path)
    return value


__all__ = ["fill", "find_masked_paths", "iter_masks"]
