"""slices: a whole run as JSON and back. `dump` keeps its histories and where it stands, `revive` makes a Run of that.

What was before each write is not kept: it is worked out again by applying the writes in order, and so are the
checkpoints. A value that shares its parts with the one before it (a list that grew, a mapping with one key changed) is
kept as the difference, so that a log grows with the changes and not with the board.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.codec import TAG, decode, encode
from agentnb.board.secrets import hidden, is_secret
from agentnb.board.values import ABSENT, ATOMS, FrozenDict, FrozenList, freeze, frozen_dict
from agentnb.clock import Clock
from agentnb.engine.history import CARRIED, Act, ActRow, Call, Event, Failure, FrameRow, History, Note, Tables
from agentnb.engine.replica import Replica, before
from agentnb.errors import Problem, StoreError

if TYPE_CHECKING:
    from agentnb.engine.plan import Plan
    from agentnb.engine.run import Run

VERSION: Final = 1
Json = dict[str, Any]


def dump(run: Run, *, lenient: bool = False) -> Json:
    """Return a run as JSON: every history of it, those it has left included, and where it stands. Masked.

    A step in flight is not kept: it runs again. `lenient` writes what no codec takes as short text, marked as opaque.

    Raises:
        StoreError: L401, a value on the board can be kept by no codec.
    """
    histories = family([run.chain, *(chain for chain, _ in run.left)])
    number = {id(history): at for at, history in enumerate(histories)}
    source = run.__dict__.get("random")
    return {
        **dump_histories(run.tables, histories, lenient=lenient),
        "nodes": [node.id for node in run.plan.nodes],
        "run": {
            "chain": [number[id(history)] for history in run.chain],
            "left": [[[number[id(history)] for history in chain], at] for chain, at in run.left],
            "position": run.position,
            "limit": run.limit,
            "seed": run.seed,
            "given": encode(run.given, lenient=lenient),
            "random": None if source is None else encode(source.getstate()),
            "ids": dict(run.ids.counters),
        },
    }


def family(chains: Sequence[Sequence[History]]) -> list[History]:
    """Return the histories of all chains once each, parents first."""
    return list({id(history): history for chain in chains for history in chain}.values())


def revive(plan: Plan, document: Mapping[str, Any], *, clock: Clock | None = None) -> Run:
    """Return the run that `dump` kept, ready to go on with this plan.

    Raises:
        StoreError: L402, this is no run; L403, a newer agentnb wrote it; L404, the plan lacks a node that it names.
    """
    from agentnb.engine.run import Run
    from agentnb.engine.travel import restore

    tables, histories = read_histories(document, _renumbering(plan, document))
    kept = document["run"]
    run = Run(plan, clock=clock, seed=kept["seed"])
    run.tables = tables
    run.chain = [histories[at] for at in kept["chain"]]
    run.history = run.at = run.chain[-1]
    run.left = [(tuple(histories[at] for at in chain), at_step) for chain, at_step in kept["left"]]
    run.limit, run.given = kept["limit"], _frozen(kept["given"])
    run.ids.counters.update(kept["ids"])
    if kept["random"] is not None:
        run.random.setstate(decode(kept["random"]))
    restore(run, kept["position"])
    run.check_at = max(run.check_at, run.position + 1)
    run.set_mark()
    return run


def _renumbering(plan: Plan, document: Mapping[str, Any]) -> dict[int, int]:
    """Return the numbers that this plan gives to the nodes of the document."""
    numbers = {-1: -1}
    for old, name in enumerate(document.get("nodes", ())):
        if name in plan.index:
            numbers[old] = plan.index[name]
    used = {row[0] for row in document.get("tables", {}).get("acts", ())}
    missing = [document["nodes"][old] for old in sorted(used - numbers.keys())]
    if missing:
        raise StoreError(
            Problem(
                "L404",
                f"this run was recorded with nodes that the recipe lacks: {', '.join(map(repr, missing))}",
                f"recipe {plan.recipe.name!r}",
                f"its nodes are: {', '.join(plan.index)}",
                "open it with the recipe that it was recorded with, or without any to read it",
            )
        )
    return numbers


# -- histories to JSON -------------------------------------------------------------------------------------------------


def dump_histories(tables: Tables, histories: Sequence[History], *, lenient: bool = False) -> Json:
    """Return histories of one tree, parents first, as JSON; every parent of one must be among them.

    Raises:
        StoreError: L401, a value can be kept by no codec.
    """
    number = {id(history): at for at, history in enumerate(histories)}
    return {
        "version": VERSION,
        "tables": {
            "frames": [[*row[:-1], encode(row.given, lenient=lenient)] for row in tables.frames],
            "acts": [list(row) for row in tables.acts],
            "codes": [[scope, list(path)] for scope, path in tables.codes],
        },
        "histories": [
            {"parent": None if history.parent is None else number[id(history.parent)], **_history(history, lenient)}
            for history in histories
        ],
    }


def _history(history: History, lenient: bool) -> Json:
    size = len(history.s_pend)
    began, ended = history.s_t0[:size].tolist(), history.s_t1[:size].tolist()
    pushes, reads = history.s_pend[size - 1], len(history.r_step)
    values = history.p_val[:pushes]
    return {
        "base": history.base,
        "name": history.name,
        "sealed": history.sealed,
        "steps": {
            "act": history.s_act[:size].tolist(),
            "began": [began[0], *(later - earlier for earlier, later in pairwise(began))],
            "took": [end - start for start, end in zip(began, ended, strict=True)],
            "flags": history.s_flag[:size].tolist(),
            "front": history.s_pos[:size].tolist(),
            "writes": history.s_wend[:size].tolist(),
            "pushes": history.s_pend[:size].tolist(),
        },
        "pushes": {
            "act": history.p_act[:pushes].tolist(),
            "carried": [row for row, value in enumerate(values) if value is CARRIED],
            "values": [[row, encode(value, lenient=lenient)] for row, value in enumerate(values)
                       if value is not None and value is not CARRIED],
        },
        "reads": {"step": history.r_step[:reads].tolist(), "code": history.r_code[:reads].tolist()},
        "writes": _writes(history, history.s_wend[size - 1], lenient),
        **_rows(history, lenient),
    }  # fmt: skip


def _writes(history: History, size: int, lenient: bool) -> Json:
    codes = history.tables.codes
    rows = zip(history.w_code[:size], history.w_new[:size], history.w_old[:size], strict=True)
    secret = [next(filter(is_secret, path), None) for _, path in codes]
    return {
        "code": history.w_code[:size].tolist(),
        "new": [
            encode(new, secret[code >> 2], lenient=lenient)
            if new.__class__ in ATOMS or secret[code >> 2] or code & 3
            else _difference(new, before(old, codes[code >> 2][1]), lenient)
            for code, new, old in rows
        ],
        "in_place": sorted(row for row in history.in_place if row < size),
        "order": [[row, behind] for row, behind in history.order.items() if row < size],
    }


def _difference(new: Any, old: Any, lenient: bool) -> Any:
    """Encode a value by what it does not share with the one before it."""
    if new is old and new.__class__ not in ATOMS:
        return {TAG: "same"}
    if new.__class__ is FrozenList and old.__class__ is FrozenList and new.items is old.items and new.size >= old.size:
        return {TAG: "grown", "v": [encode(item, lenient=lenient) for item in new.items[old.size : new.size]]}
    if new.__class__ is FrozenDict and old.__class__ is FrozenDict and old and _extends(new, old):
        changed = {key: item for key, item in new.items() if item is not old.get(key, ABSENT)}
        if len(changed) < len(new):
            return {TAG: "merged", "v": {key: encode(item, key, lenient=lenient) if is_secret(key) else
                                         _difference(item, old.get(key, ABSENT), lenient)
                                         for key, item in changed.items()}}  # fmt: skip
    return encode(new, lenient=lenient)


def _extends(new: FrozenDict, old: FrozenDict) -> bool:
    """Say whether merging the changed keys into the old mapping gives the new one, in its order."""
    names = list(new)
    return names[: len(old)] == list(old) and all(name.__class__ is str and hidden(name) == name for name in names)


def _rows(history: History, lenient: bool) -> Json:
    """Return what is rare: frames, errors, notes, acts of people, events, calls."""
    tip = history.tip

    def coded(row: Any, *plain: int) -> list[Any]:
        return [item if at in plain else encode(item, name, lenient=lenient)
                for at, (name, item) in enumerate(zip(row._fields, row, strict=True))]  # fmt: skip

    return {
        "rare": [step for step in history.rare if step <= tip],
        "opened": [[step, list(frames)] for step, frames in history.opened.items() if step <= tip],
        "closed": [[step, list(frames)] for step, frames in history.closed.items() if step <= tip],
        "errors": [
            [step, failure.type, hidden(failure.message), failure.timeout]
            for step, failure in history.errors.items()
            if step <= tip
        ],
        "notes": [[step, coded(note)] for step, note in history.notes.items() if step <= tip],
        "acts": [_act(act, lenient) for act in history.people if act.step <= tip],
        "events": [coded(event, 0, 1, 8) for event in history.events if event.at <= tip],
        "calls": [coded(call, 0, 1, 2) for call in history.calls if call.step <= tip],
    }


def _act(act: Act, lenient: bool) -> list[Any]:
    key = next(filter(is_secret, act.target.split(".")), act.target)
    old, new = (encode(value, key, lenient=lenient) for value in (act.old, act.new))
    return [act.step, act.act, act.target, old, new, act.actor, encode(act.time)]


# -- JSON to histories -------------------------------------------------------------------------------------------------


def read_histories(document: Mapping[str, Any], nodes: Mapping[int, int] | None = None) -> tuple[Tables, list[History]]:
    """Return the tables and histories that `dump_histories` wrote. Nothing is imported and nothing runs.

    L402: this is no run or trace of agentnb, or it is damaged.

    Args:
        nodes: the number that each node of the document has now, where it has another one.

    Raises:
        StoreError: L402, the document is none of ours; L403, a newer agentnb wrote it.
    """
    version = document.get("version")
    if isinstance(version, int) and version > VERSION:
        raise StoreError(
            Problem("L403", "a newer agentnb wrote this", "the document", f"it has version {version}, this one reads "
                    f"up to {VERSION}", "install a newer agentnb: pip install --upgrade agentnb")
        )  # fmt: skip
    try:
        return _read(document, nodes)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise StoreError(
            Problem("L402", "this is not a run of agentnb, or it is damaged", "the document",
                    f"{type(error).__name__}: {error}", "open a file that trace.to_json or a store has written")
        ) from error  # fmt: skip


def _read(document: Mapping[str, Any], nodes: Mapping[int, int] | None) -> tuple[Tables, list[History]]:
    tables, kept = Tables(), document["tables"]
    new = (lambda node: node) if nodes is None else nodes.__getitem__
    for row in kept["frames"][1:]:
        frame = FrameRow(*row)
        tables.frames.append(frame._replace(owner=new(frame.owner), given=_frozen(frame.given)))
    for row in kept["acts"]:
        act = ActRow(*row)
        tables.act(act._replace(node=new(act.node)))
    for scope, path in kept["codes"]:
        tables.code(scope, tuple(path))
    histories: list[History] = []
    for part in document["histories"]:
        parent = None if part["parent"] is None else histories[part["parent"]]
        histories.append(_read_columns(tables, part, parent))
    for history, part in zip(histories, document["histories"], strict=True):
        Replica.of(history).fill(history, part["writes"]["new"], _changed_back)
        Replica.of(history).mark(history)
    return tables, histories


def _read_columns(tables: Tables, part: Mapping[str, Any], parent: History | None) -> History:
    history = History(tables, base=part["base"], parent=parent, name=part["name"], sealed=part["sealed"])
    steps, pushes = part["steps"], part["pushes"]
    began = list(accumulate(steps["began"]))
    history.s_act, history.s_flag = array("I", steps["act"]), array("B", steps["flags"])
    history.s_t0 = array("q", began)
    history.s_t1 = array("q", [start + took for start, took in zip(began, steps["took"], strict=True)])
    history.s_pos, history.s_wend = array("I", steps["front"]), array("I", steps["writes"])
    history.s_pend = array("I", steps["pushes"])
    history.p_act = array("I", pushes["act"])
    history.p_val = [None] * len(history.p_act)
    for row in pushes["carried"]:
        history.p_val[row] = CARRIED
    for row, value in pushes["values"]:
        history.p_val[row] = freeze(decode(value))
    history.r_step, history.r_code = array("I", part["reads"]["step"]), array("I", part["reads"]["code"])
    history.w_code = array("I", part["writes"]["code"])
    history.in_place = set(part["writes"]["in_place"])
    history.order = dict(part["writes"]["order"])
    history.rare = list(part["rare"])
    history.opened = {step: tuple(frames) for step, frames in part["opened"]}
    history.closed = {step: tuple(frames) for step, frames in part["closed"]}
    history.errors = {step: Failure(kind, message, None, late) for step, kind, message, late in part["errors"]}
    history.notes = {step: Note(*map(_frozen, row)) for step, row in part["notes"]}
    history.people = [Act(*map(_frozen, row)) for row in part["acts"]]
    history.events = [Event(*map(_frozen, row)) for row in part["events"]]
    history.calls = [Call(*map(_frozen, row)) for row in part["calls"]]
    return history


def _frozen(document: Any) -> Any:
    return freeze(decode(document))


def _changed_back(document: Any, old: Any) -> Any:
    """Return the frozen value that `_difference` encoded, from what stood there before."""
    tag = document.get(TAG) if document.__class__ is dict else None
    if tag == "same":
        return old
    if tag == "grown":
        for item in document["v"]:
            old = old.grown(_frozen(item))
        return old
    if tag == "merged":
        parts = {key: _changed_back(item, old.get(key, ABSENT)) for key, item in document["v"].items()}
        return frozen_dict({**old, **parts})
    return freeze(decode(document), old)


__all__ = ["VERSION", "dump", "dump_histories", "family", "read_histories", "revive"]
