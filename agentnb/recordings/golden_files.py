"""Goldens: a recorded run as a text file, one JSON object per line, for tests that replay it.

The first line contains what the run started with; each further line is a step: the node, its writes, its calls with
their answers, and the nodes that it scheduled. Nodes and paths are written by name and durations are left out, so that
a diff of two versions of a file is readable. The lines contain everything needed for a replay.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import is_
from pathlib import Path
from typing import Any, Final

from agentnb.board.codec import decode, encode, encode_path
from agentnb.board.masking import find_secret_word
from agentnb.board.paths import APPEND, OPS
from agentnb.board.values import ABSENT, FrozenList, FrozenRecord, freeze
from agentnb.clock import EPOCH, to_microseconds
from agentnb.engine.core.history import (
    CARRIED,
    COUNTED,
    NO_ACTIVATION,
    PHASES,
    STATUSES,
    UNCAUGHT,
    UNKNOWN_EDGE,
    ActivationRow,
    Call,
    Event,
    FrameRow,
    History,
    Intervention,
)
from agentnb.engine.persistence.delta_loader import UNRECORDED, check_version
from agentnb.engine.persistence.deltas import VERSION, encode_event
from agentnb.engine.replay.step_record import find_appended_index
from agentnb.errors import ExecutionError, Problem, StoreError, did_you_mean
from agentnb.recipe.model import Recipe
from agentnb.recordings.formats import read_text
from agentnb.recordings.trace_files import make_recording
from agentnb.secrets import mask_text, masking_for
from agentnb.session.recording import Recording
from agentnb.text import replace_surrogates, safe_str
from agentnb.trace.recipe_snapshot import ORIGIN
from agentnb.trace.trace import SimulationTrace

FORMAT: Final = "agentnb.golden"
GOLDEN_VERSION: Final = 1
REDACTED: Final = "<redacted>"
MOST_KNOWN: Final = 10_000  # maximum number of collected paths, used for suggestions if a path matches nothing
_CALL: Final = ("result", "error", "tokens_in", "tokens_out", "cost_usd", "provider", "model", "finish_reason")


def open_golden(where: str, recipe: Recipe | None = None) -> Recording:
    """Return the recorded run of a golden as a read-only session.

    Raises:
        StoreError: L580, it is not a golden or is damaged.
    """
    return make_recording(parse_document(where), where, recipe)


def find_redacted_paths(where: str) -> tuple[str, ...]:
    """Return the paths that were declared as volatile when a golden was recorded."""
    first = _read_lines(where)[0]
    return tuple(str(path) for path in first.get("redact", ()))


# -- writing -----------------------------------------------------------------------------------------------------------


def to_json_text(trace: SimulationTrace, redact: Sequence[str] = ()) -> str:
    """Return a run as the text of a golden. Masked.

    Args:
        redact: paths whose values are volatile and are left out: of the board (`answer.id`), of a call
            (`calls.NAME.arguments.when`, `calls.NAME.result.id`), or of an event (`events.TYPE.id`); `*` matches any
            single part. The other reports of a step (its thought, its observation) are left out if it has such a value.

    Raises:
        ExecutionError: L584, nothing in the run is at a path.
    """
    with masking_for(trace.reading().tables.secrets):
        writer = _Writer(trace, redact)
        lines = [json.dumps(line, ensure_ascii=False) for line in writer.lines()]
        writer.redaction.check_all_used()
    return replace_surrogates("\n".join(lines) + "\n")


class Redaction:
    """The declared volatile paths of a golden; records which of them had a value to leave out."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(dict.fromkeys(paths))
        self.patterns = [path.split(".") for path in self.paths]
        self.used: set[str] = set()
        self.calls: dict[str, None] = {}  # by the paths of their arguments and results
        self.known: dict[str, None] = {}  # the paths seen so far

    def apply(self, value: Any, *path: Any) -> Any:
        """Return a value without the parts whose paths match a pattern; `path` is where the value is."""
        return self._apply(value, ".".join(map(str, path)).split(".") if path else []) if self.patterns else value

    def covers(self, *path: Any) -> bool:
        """Return True if a value at this path, or a part of it, is left out."""
        parts = ".".join(map(str, path)).split(".")
        return any(matches(parts, pattern[: len(parts)]) for pattern in self.patterns)

    def _apply(self, value: Any, path: list[str]) -> Any:
        if value is ABSENT:
            return value
        if path and len(self.known) < MOST_KNOWN:
            self.known[".".join(path)] = None
        matching = [pattern for pattern in self.patterns if matches(path, pattern)]
        if matching:
            self.used |= {".".join(pattern) for pattern in matching}
            return REDACTED
        if isinstance(value, FrozenRecord):
            fields = self._apply(value.parts, path)
            return value if fields is value.parts else FrozenRecord(value.template, freeze(fields))
        if isinstance(value, dict):
            items = {key: self._apply(item, [*path, *str(key).split(".")]) for key, item in value.items()}
            return value if all(items[key] is item for key, item in value.items()) else items
        if isinstance(value, list | tuple):
            before = list(islice(value.items, value.size)) if isinstance(value, FrozenList) else list(value)
            parts = [self._apply(item, [*path, str(at)]) for at, item in enumerate(before)]
            return value if all(map(is_, parts, before)) else type(value)(parts) if type(value) is tuple else parts
        return value

    def check_all_used(self) -> None:
        """Raise an error if a path matches nothing, because its value would then stay in the file under another name.

        L584: a redacted path matches nothing.
        """
        unused = [path for path in self.paths if path not in self.used]
        if not unused:
            return
        known = [path for path in self.known if path]
        raise ExecutionError(
            *(
                Problem("L584", f"the run has no value at {path!r}", "redact=[...]",
                        "a path is a key of the board (`answer.id`), or starts with `calls.NAME.arguments`, "
                        "`calls.NAME.result` or `events.TYPE`; nothing is written until each path is found",
                        did_you_mean(path, known, f"use another path, or leave it out; there are: {_list_some(known)}"))
                for path in unused
            )
        )  # fmt: skip


def _list_some(paths: Sequence[str]) -> str:
    short = sorted(paths, key=lambda path: path.count("."))[:12]
    return ", ".join(short) or "none"


class _Writer:
    def __init__(self, trace: SimulationTrace, redact: Sequence[str]) -> None:
        self.trace, self.reading = trace, trace.reading()
        self.tables, self.redaction = self.reading.tables, Redaction(redact)
        self.names = [node.id for node in self.reading.nodes]
        self.edges: dict[tuple[str | None, str], list[int]] = {}  # from one node to another
        for number, edge in enumerate(self.reading.edges):
            self.edges.setdefault((edge.source, edge.target), []).append(number)
        self.frames = {0: 0}  # frames are numbered in the order in which they were opened
        self.pushed = 0

    def lines(self) -> Iterable[dict[str, Any]]:
        trace = self.trace
        origin = dict(trace.origin())
        if "recipe" in origin:  # its text is in a file beside the tests
            origin["recipe"] = {**origin["recipe"], "text": None}
        outcome = trace.outcome
        if self.redaction.patterns:
            if "given" in origin:
                origin["given"] = encode(self.redaction.apply(freeze(decode(origin["given"]))), lenient=True)
            if outcome is not None and "outputs" in outcome:
                outcome = {**outcome, "outputs": self.redaction.apply(freeze(outcome["outputs"]))}
        yield {
            "format": FORMAT,
            "version": GOLDEN_VERSION,
            "name": safe_str(trace.agent_id),
            **({"redact": list(self.redaction.paths)} if self.redaction.paths else {}),
            "outcome": encode(outcome, lenient=True),
            **origin,
            "nodes": [list(node) for node in self.reading.nodes],
            "edges": [[*edge[:3], safe_str(edge.condition), edge.asks] for edge in self.reading.edges],
        }
        rows: list[dict[str, Any]] = []
        for history, last in self.reading.parts():
            base = self.pushed
            for row in range(last + 1):
                line = self._make_line(history, row, base)
                if row or not rows:
                    rows.append(line)
                else:  # a fork starts with the edits after the step
                    _merge(rows[-1], line)
        yield from ({key: value for key, value in line.items() if value not in (None, [], {})} for line in rows)

    def _make_line(self, history: History, row: int, base: int) -> dict[str, Any]:
        step = history.base + row
        opened = [self._open_frame(number) for number in history.opened_frames.get(step, ())] if row else []
        writes = range(history.write_ends[row - 1] if row else 0, history.write_ends[row])
        pushes = range(history.push_ends[row - 1] if row else 0, history.push_ends[row])
        self.pushed += len(pushes)
        line: dict[str, Any] = {"step": step}
        if row:
            flag = history.step_flags[row]
            line |= self._encode_activation(history.step_activations[row])
            line |= {"phase": PHASES[flag & 3]} if flag & 3 else {}
            line |= {"status": STATUSES[flag >> 2 & 3]} if flag >> 2 & 3 else {}
            line |= {"uncounted": True} if not flag & COUNTED else {}
            line |= {"uncaught": True} if flag & UNCAUGHT else {}
        line["opened"] = opened
        line["reads"] = [
            self._encode_path(code >> 2)
            for code, at in zip(history.read_codes, history.read_steps, strict=True)
            if at == step and row
        ]
        line["calls"] = [
            self._call(call, history.step_activations[row]) for call in history.calls if call.step == step and row
        ]
        line["writes"] = [self._write(history, number) for number in writes]
        line["in_place"] = [at for at, number in enumerate(writes) if number in history.in_place]
        line["order"] = [[at, history.order[number]] for at, number in enumerate(writes) if number in history.order]
        line["reduced"] = [[at, [[part.node, part.op, encode_path(part.path),
                                  encode(self.redaction.apply(part.value, *part.path), lenient=True)]
                                 for part in history.reduced_parts[number]]]
                           for at, number in enumerate(writes) if number in history.reduced_parts]  # fmt: skip
        line["events"] = [self._encode_event(event) for event in history.events
                          if event.at == step and (row or not history.base)]  # fmt: skip
        if row and (failure := history.errors.get(step)) is not None:
            line["error"] = [failure.type, safe_str(failure.message), failure.timeout]
        if row and (note := history.notes.get(step)) is not None and not self._has_redacted(history, row):
            line["note"] = [encode(item, name, lenient=True) for name, item in zip(note._fields, note, strict=True)]
        if row and step in history.times:
            line["times"] = [to_microseconds(time) for time in history.times[step]]
        line["people"] = [
            self._encode_person(intervention)
            for intervention in history.interventions
            if intervention.step == step and (row or not history.base)
        ]
        if not row and history.base:
            line["people"] = [
                self._encode_person(intervention) for intervention in history.interventions if intervention.step == step
            ]
        line["closed"] = [self.frames[number] for number in history.closed_frames.get(step, ())] if row else []
        line["next"] = [self._push(history, number, line.get("node")) for number in pushes]
        line["asides"] = [[at - pushes.start, history.insertions[at] - pushes.start,
                           history.insertion_returns[history.insertions[at] - 1] + base]
                          for at in pushes if at in history.insertions]  # fmt: skip
        line["queue"] = history.queue_starts[row] + base
        return line

    def _encode_activation(self, number: int) -> dict[str, Any]:
        activation = self.tables.activations[number]
        entry: dict[str, Any] = {"node": self.names[activation.node] if activation.node >= 0 else None}
        fields = {
            "frame": self.frames[activation.frame],
            "what": activation.purpose,
            "event": activation.event,
            "about": activation.about,
        }
        _, *defaults = ActivationRow(0, 0)
        entry |= {
            name: value for (name, value), default in zip(fields.items(), defaults, strict=True) if value != default
        }
        return entry

    def _open_frame(self, number: int) -> list[Any]:
        frame = self.tables.frames[number]
        self.frames[number] = len(self.frames)
        return [self.frames[frame.parent], self.names[frame.owner], frame.region, frame.policy, frame.branch,
                self.frames[frame.scope], encode(self.redaction.apply(frame.inputs), lenient=True)]  # fmt: skip

    def _encode_path(self, number: int) -> Any:
        """Return a path: text for a key of the root; else the parts, and the number of another scope."""
        scope, path = self.tables.codes[number]
        if not scope and len(path) == 1:
            return mask_text(str(path[0]))
        return [encode_path(path), self.frames.get(scope, 0)] if scope else [encode_path(path)]

    def _write(self, history: History, number: int) -> list[Any]:
        code = history.write_codes[number]
        _, path = self.tables.codes[code >> 2]
        inside = (*path, find_appended_index(history, number, path)) if code & 3 == APPEND else path
        value = self.redaction.apply(history.new_values[number], *inside)
        return [self._encode_path(code >> 2), OPS[code & 3], encode(value, find_secret_word(path), lenient=True)]

    def _call(self, call: Call, own_activation: int) -> dict[str, Any]:
        fields: dict[str, Any] = {"kind": call.kind, "name": call.name}
        if call.activation != own_activation:
            fields["of"] = self._encode_activation(call.activation)
        numbers = (("call", call.call, 0), ("attempt", call.attempt, 1), ("wait", call.wait, 0.0))
        fields |= {name: value for name, value, default in numbers if value != default}
        arguments = self.redaction.apply(call.arguments, "calls", call.name, "arguments")
        fields["arguments"] = encode(arguments, lenient=True)
        for name in _CALL:
            value = getattr(call, name)
            if name == "result":
                value = self.redaction.apply(value, "calls", call.name, "result")
            if value is not None:
                fields[name] = encode(value, lenient=True)
        return fields

    def _encode_person(self, intervention: Intervention) -> list[Any]:
        key = find_secret_word(tuple(intervention.target.split(".")))
        match intervention.action:
            case "edit":
                at: tuple[str, ...] = (intervention.target,)
            case "skip":  # its value consists of writes
                at = ()
            case other:
                at = ("calls", intervention.target, "arguments" if other == "change" else "result")
        old, new = (
            encode(self.redaction.apply(value, *at), key, lenient=True)
            for value in (intervention.old, intervention.new)
        )
        return [intervention.action, mask_text(intervention.target), old, new, intervention.actor]

    def _encode_event(self, event: Event) -> list[Any]:
        payload = self.redaction.apply(event.payload, "events", event.type)
        return encode_event(event._replace(payload=payload))

    def _has_redacted(self, history: History, row: int) -> bool:
        """Return True if a step has read or written a redacted value, or sent or received one in a call."""
        redaction, step = self.redaction, history.base + row
        if not redaction.patterns:
            return False
        codes = [history.write_codes[at] for at in range(history.write_ends[row - 1], history.write_ends[row])]
        codes += [code for code, at in zip(history.read_codes, history.read_steps, strict=True) if at == step]
        paths: list[Sequence[Any]] = [self.tables.codes[code >> 2][1] for code in codes]
        node = self.tables.activations[history.step_activations[row]].node
        paths += dict(self.reading.nodes[node].inputs).values() if node >= 0 else ()
        names = {call.name for call in history.calls if call.step == step}
        paths += [("calls", name, part) for name in names for part in ("arguments", "result")]
        paths += [("events", event.type) for event in history.events if event.at == step]
        return any(redaction.covers(*path) for path in paths)

    def _push(self, history: History, number: int, source: str | None) -> Any:
        """Return a push of a node's step; its edge is omitted if no other edge leads from that node to the target."""
        row, value = self._encode_activation(history.push_activations[number]), history.push_values[number]
        edge = history.push_edges[number]
        if value is CARRIED:
            row["carried"] = True
        elif value is not None:
            row["value"] = encode(value, lenient=True)
        if value is not CARRIED and [edge] != self.edges.get((source, row["node"]), [UNKNOWN_EDGE]):
            row["edge"] = edge
        return row


def _merge(line: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add the first row of a fork to the step at which it starts."""
    for name in ("in_place", "order", "reduced"):
        size = len(line["writes"])
        line[name] += [at + size if isinstance(at, int) else [at[0] + size, *at[1:]] for at in more[name]]
    line["asides"] += [
        [at + len(line["next"]), end + len(line["next"]), waiting] for at, end, waiting in more["asides"]
    ]
    for name in ("writes", "people", "next", "events"):
        line[name] += more[name]
    line["queue"] = more["queue"]


def matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return True if a path begins with a pattern, in which `*` matches any single part."""
    return len(path) >= len(pattern) and all(want in {"*", part} for part, want in zip(path, pattern, strict=False))


# -- reading -----------------------------------------------------------------------------------------------------------


def parse_document(where: str) -> dict[str, Any]:
    """Return a golden as the document of a trace.

    Raises:
        StoreError: L580, it is not a golden or is damaged.
    """
    first, *steps = _read_lines(where)
    try:
        return _Reader(first, steps).document(Path(where).stem)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise _make_damage_error(where, f"{type(error).__name__}: {error}") from None


def _read_lines(where: str) -> list[dict[str, Any]]:
    """Return the lines of a golden.

    Raises:
        StoreError: L580; L403, a newer agentnb wrote it; R340, it is missing.
    """
    try:
        lines = [json.loads(line) for line in read_text(where).decode("utf-8").splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise _make_damage_error(where, str(error)) from None
    if not lines or not all(isinstance(line, dict) for line in lines) or lines[0].get("format") != FORMAT:
        raise _make_damage_error(where, f"its first line does not have the format {FORMAT!r}")
    check_version(lines[0].get("version"), GOLDEN_VERSION)
    return lines


def _make_damage_error(where: str, why: str) -> StoreError:
    """L580: a golden is damaged."""
    return StoreError(
        Problem("L580", "this golden cannot be read", where, why, "record it again: pytest --update-goldens")
    )


class _Reader:
    """Renumbers the nodes, paths and frames of the lines in the order in which they appear."""

    def __init__(self, first: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> None:
        self.first, self.steps = first, steps
        self.nodes = {row[0]: at for at, row in enumerate(first["nodes"])}
        self.frames: list[list[Any]] = []
        self.activations: dict[tuple[int, ...], int] = {}
        self.codes: dict[str, int] = {}
        self.paths: list[list[Any]] = []
        self.written, self.values, self.pushes = list[int](), list[Any](), list[int]()
        self.reads: list[list[int]] = [[], []]
        self.rare: defaultdict[str, list[Any]] = defaultdict(list)
        self.queue = 0

    def document(self, run_id: str) -> dict[str, Any]:
        """Return the document of a trace: the tables, and one delta with all steps."""
        first = self.first
        columns: list[list[int]] = [[], [], [], [], [], [], []]
        for at, line in enumerate(self.steps):
            if line["step"] != at:
                raise ValueError(f"step {at} is missing")
            self._add(line, columns)
        rare: dict[str, Any] = {name: rows for name, rows in self.rare.items() if rows}
        rare |= {"new": [None, 0, None]} | ({"reads": self.reads} if self.reads[0] else {})
        tables = {
            "frames": [1, self.frames],
            "acts": [0, [list(row) for row in self.activations]],
            "codes": [0, self.paths],
        }
        return {
            "format": "agentnb.trace", "agent_id": first["name"], "agent_version": "v2", "run_id": run_id,
            "score": None, "outcome": first["outcome"], "metadata": encode({}), "nodes": first["nodes"],
            "edges": first["edges"], "version": VERSION,
            **{name: first[name] for name in ORIGIN if name in first},
            "slices": [{"t": tables, "p": [[0, columns, [self.written, self.values], self.pushes, rare]]}],
        }  # fmt: skip

    def _add(self, line: Mapping[str, Any], columns: Sequence[list[int]]) -> None:
        """Add the rows of one line."""
        step, base, start = line["step"], len(self.written), len(self.pushes)
        own_activation = self._parse_activation(line) if step else NO_ACTIVATION
        self._add_frames(line, step)
        for path, op, value in line.get("writes", ()):
            self.written.append(self._decode_path(path) * 4 + OPS.index(op))
            self.values.append(value)
        for path in line.get("reads", ()):
            self.reads[0].append(step)
            self.reads[1].append(self._decode_path(path) * 4)
        for pushed in line.get("next", ()):
            if pushed.get("carried"):
                self.rare["carried"].append(len(self.pushes))
            elif "value" in pushed:
                self.rare["values"].append([len(self.pushes), pushed["value"]])
            self.pushes.append(self._parse_activation(pushed))
            self.rare["edges"].append(pushed.get("edge", UNRECORDED))
        self._add_rare(line, (step, own_activation), base, start)
        row = [
            own_activation,
            0,
            0,
            _parse_flag(line) if step else 0,
            line["queue"] - self.queue,
            len(self.written) - base,
            len(self.pushes) - start,
        ]
        self.queue = line["queue"]
        for column, number in zip(columns, row, strict=True):
            column.append(number)

    def _add_frames(self, line: Mapping[str, Any], step: int) -> None:
        opened = [self._open(row, step) for row in line.get("opened", ())]
        closed = line.get("closed")
        if opened:
            self.rare["opened"].append([step, opened])
        if closed:
            self.rare["closed"].append([step, closed])
        if opened or closed:
            self.rare["rare"].append(step)

    def _add_rare(self, line: Mapping[str, Any], of: tuple[int, int], base: int, start: int) -> None:
        rare, (step, own_activation) = self.rare, of
        rare["in_place"] += [base + row for row in line.get("in_place", ())]
        rare["order"] += [[base + row, behind] for row, behind in line.get("order", ())]
        rare["reduced"] += [[base + row, parts] for row, parts in line.get("reduced", ())]
        rare["asides"] += [[start + row, start + end, waiting] for row, end, waiting in line.get("asides", ())]
        rare["events"] += line.get("events", ())
        rare["calls"] += [self._call(step, own_activation, call) for call in line.get("calls", ())]
        rare["people"] += [[step, *row, encode(EPOCH)] for row in line.get("people", ())]
        if "error" in line:
            rare["errors"].append([step, *line["error"], None, None])
        if "note" in line:
            rare["notes"].append([step, line["note"]])
        if "times" in line:
            rare["times"].append([step, *line["times"]])

    def _parse_activation(self, line: Mapping[str, Any]) -> int:
        node = -1 if line["node"] is None else self.nodes[line["node"]]
        row = (node, line.get("frame", 0), line.get("what", 0), line.get("event", -1), line.get("about", -1))
        return self.activations.setdefault(row, len(self.activations))

    def _open(self, row: Sequence[Any], step: int) -> int:
        parent, owner, region, policy, branch, scope, inputs = row
        number = len(self.frames) + 1
        frame = FrameRow(number, parent, self.nodes[owner], region, policy, branch, scope, step, inputs)
        self.frames.append(list(frame))
        return number

    def _decode_path(self, path: Any) -> int:
        known = self.codes.setdefault(json.dumps(path), len(self.codes))
        if known == len(self.paths):
            scope, parts = (0, [path]) if isinstance(path, str) else ((*path, 0)[1], path[0])
            self.paths.append([scope, parts])
        return known

    def _call(self, step: int, own_activation: int, call: Mapping[str, Any]) -> list[Any]:
        activation = self._parse_activation(call["of"]) if "of" in call else own_activation
        rest = {name: call.get(name) for name in _CALL}
        row = Call(step, activation, call.get("call", 0), call["kind"], call["name"], call.get("attempt", 1),
                   call.get("wait", 0.0), call["arguments"], seconds=0.0, **rest)  # fmt: skip
        return list(row)


def _parse_flag(line: Mapping[str, Any]) -> int:
    flag = PHASES.index(line.get("phase", "run")) | STATUSES.index(line.get("status", "ok")) << 2
    return flag | (0 if line.get("uncounted") else COUNTED) | (UNCAUGHT if line.get("uncaught") else 0)


__all__ = [
    "FORMAT",
    "GOLDEN_VERSION",
    "REDACTED",
    "find_redacted_paths",
    "matches",
    "open_golden",
    "parse_document",
    "to_json_text",
]
