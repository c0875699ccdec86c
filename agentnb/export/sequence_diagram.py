"""A run as a sequence diagram in Mermaid: nodes, models, tools and people as participants."""

from __future__ import annotations

from typing import Any, Final

from agentnb.draw.label_text import clean
from agentnb.engine.core.history import OUTSIDE
from agentnb.text import safe_repr
from agentnb.trace.trace import SimulationTrace

LONGEST: Final = 60  # characters of a message
_ESCAPED: Final = str.maketrans({"#": "#35;", ";": "#59;", "\n": " ", "\r": " ", "<": "#lt;", ">": "#gt;"})


def render_sequence_diagram(trace: SimulationTrace, max_steps: int = 100) -> str:
    """Return the text of a Mermaid sequence diagram of the first `max_steps` steps.

    An arrow between nodes is a step, labeled with what the node wrote. Arrows to a model or a tool are calls with
    their answers, arrows from a person are interventions.
    """
    writer = _Writer(trace)
    steps = min(len(trace), max_steps)
    for step in range(steps + 1):
        writer.write(step)
    if len(trace) > steps:
        writer.lines.append(f"  Note over {writer.name('node', 'start')}: {len(trace) - steps} more steps")
    return "\n".join(["sequenceDiagram", *writer.participants(), *writer.lines, ""])


class _Writer:
    def __init__(self, trace: SimulationTrace) -> None:
        self.trace, self.lines = trace, list[str]()
        self.names: dict[tuple[str, str], str] = {}
        self.people = trace.reading().interventions()
        self.last_participant = self.name("node", "start")
        edges = trace.frames.edges.dropna(subset=["source", "target"])  # external events have no source
        self.senders: dict[int, str] = {}
        waiting: dict[str, list[str]] = {}
        ran = {step.step: step.node_id for step in trace.steps}
        rows = list(zip(edges["step"], edges["source"].astype(str), edges["target"].astype(str), strict=True))
        at = 0
        for step in sorted(ran):
            while at < len(rows) and rows[at][0] < step:
                waiting.setdefault(rows[at][2], []).append(rows[at][1])
                at += 1
            if waiting.get(ran[step]):
                self.senders[step] = waiting[ran[step]].pop(0)

    def name(self, kind: str, label: str) -> str:
        """Return the short name of a participant, which is added on first use."""
        return self.names.setdefault((kind, label), f"p{len(self.names)}")

    def participants(self) -> list[str]:
        """Return the lines that declare the participants, in the order of their first use."""
        keywords = {"person": "actor"}
        return [f"  {keywords.get(kind, 'participant')} {name} as {_escape_text(label)}"
                for (kind, label), name in self.names.items()]  # fmt: skip

    def write(self, step: int) -> None:
        """Add a step, its calls, and the interventions after it."""
        if step:
            step_row = self.trace.steps[step - 1]
            node = self.name("node", step_row.node_id)
            source = self.name("node", self.senders[step]) if step in self.senders else self.last_participant
            phase = "" if step_row.phase == "run" else f"{step_row.phase}: "
            outputs = ", ".join(
                f"{key} = {safe_repr(value, key=key, limit=40)}" for key, value in step_row.outputs.items()
            )
            arrow = "->>" if step_row.error is None else "-x"
            self.lines.append(f"  {source}{arrow}{node}: {step}. {phase}{_escape_text(outputs or step_row.kind)}")
            self._write_calls(step, node)
            if step_row.error is not None:
                self.lines.append(f"  Note over {node}: {_escape_text(step_row.error)}")
            self.last_participant = node
        for intervention in self.people:
            if intervention.step == step:
                person = self.name("person", intervention.actor or "person")
                value: Any = "" if intervention.target == "" else f" {intervention.target}"
                self.lines.append(
                    f"  {person}->>{self.last_participant}: {_escape_text(f'{intervention.action}{value}')}"
                )

    def _write_calls(self, step: int, node: str) -> None:
        history, _ = self.trace.reading().owner(step)
        for call in history.calls:
            if call.step != step or call.call == OUTSIDE:
                continue
            other = self.name(call.kind, call.model or call.name)
            self.lines.append(f"  {node}->>{other}: {_escape_text(f'{call.kind} {call.name}')}")
            answer = call.error if call.error is not None else safe_repr(call.result, limit=LONGEST)
            self.lines.append(f"  {other}-{'-x' if call.error is not None else '->>'}{node}: {_escape_text(answer)}")


def _escape_text(text: str) -> str:
    """Return a string that cannot end a line or start markup in Mermaid."""
    short = clean(" ".join(text.split()))
    short = short if len(short) <= LONGEST else f"{short[: LONGEST - 1]}…"
    return short.translate(_ESCAPED) or " "


__all__ = ["render_sequence_diagram"]
