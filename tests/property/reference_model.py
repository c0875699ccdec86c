"""A recipe interpreted naively: the whole state copied for every step. Shares no code with the engine."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

from agentnb import ABSENT
from agentnb.recipe.model import Edge, Node, Recipe, Rescue
from tests.property import naive_paths
from tests.property.model_state import Entry, Frame, Row, Scope, Sight, State
from tests.property.node_programs import BrokenError, perform
from tests.property.user_actions import Moves

LIMIT = 1000


class FailedError(Exception):
    """The failure of a step; `late` where it was a timeout, `own` are the writes that a keeping kind keeps."""

    def __init__(self, late: bool = False, own: tuple[Any, ...] = ()) -> None:
        self.late, self.own = late, own


class Model(Moves):
    """One run of a recipe: `states[k]` is the whole after step k. `left` are the runs that it went away from."""

    def __init__(self, recipe: Recipe, inputs: dict[str, Any], limit: int | None) -> None:
        first = State({0: Scope("root")}, {0: Frame(0, None, None, "root", "isolated", None, 0, 0)}, [])
        for key, value in {**recipe.init, **inputs}.items():
            first.write(0, (key,), value)
        first.queue = [Entry(node, 0) for node in recipe.entry]
        self.recipe, self.limit, self.states, self.position = recipe, limit, [first], 0
        self.left: list[list[State]] = []

    # -- one step ----------------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Run the next activation; say whether there was one."""
        if self.status not in ("ready", "paused", "failed") or self.spent:
            return False
        self.open_tip()
        before = self.now
        entry = before.queue[0]
        try:
            after = before.copy()
            after.row, after.failed = None, None
            self.perform(after, entry)
            self.commit(after)
        except FailedError as failure:
            self.fail(before.copy(), entry, failure)
        return True

    def commit(self, state: State) -> None:
        state.done.append(("step",))
        self.states.append(state)
        self.position += 1

    def perform(self, state: State, entry: Entry) -> None:
        node = self.recipe.nodes[entry.node]
        sight = Sight(state, state.frames[entry.frame].scope)
        counted = node.counted and entry.turn == "start"
        state.used += counted
        if entry.turn == "fail":
            self.fell(state, entry)
            return
        try:
            getattr(self, f"do_{node.kind}")(state, entry, node, sight)
        except (BrokenError, naive_paths.RefusedError) as error:
            raise FailedError(own=tuple(sight.own)) from error
        except TimeoutError as error:
            raise FailedError(late=True, own=tuple(sight.own)) from error

    def ended(
        self,
        state: State,
        entry: Entry,
        sight: Sight,
        writes: dict[str, Any],
        places: list[Any] | None = None,
        chosen: list[str] | None = None,
    ) -> None:
        """End a node's turn: its inside closes, it writes, its ways out join the queue."""
        if entry.turn != "start":
            state.close(state.inside(entry.node, entry.frame))
        sight.settle(writes, places or [])
        targets = self.ways(state, entry) if chosen is None else chosen
        self.advance(state, entry, [Entry(target, entry.frame) for target in targets])
        state.row = Row(entry.node, "run" if entry.turn == "start" else "leave", "ok")

    # -- kinds of nodes ----------------------------------------------------------------------------------------------

    def do_function(self, state: State, entry: Entry, node: Node, sight: Sight) -> None:
        get = sight.get
        if node.inputs:
            arguments = {name: sight.arg(path) for name, path in node.inputs.items()}
            get = {name: value for name, value in arguments.items() if value is not ABSENT}.get
        writes, _ = perform(node.params["ops"], get)
        self.ended(state, entry, sight, writes)

    def do_doer(self, state: State, entry: Entry, node: Node, sight: Sight) -> None:
        writes, places = perform(node.params["ops"], sight.get, sight.write)
        self.ended(state, entry, sight, writes, places)

    do_keeper = do_doer

    def do_noop(self, state: State, entry: Entry, node: Node, sight: Sight) -> None:
        self.ended(state, entry, sight, {})

    do_join = do_noop

    def do_router(self, state: State, entry: Entry, node: Node, sight: Sight) -> None:
        routes, value = node.params["routes"], sight.arg(node.params["input_key"])
        target = node.params.get("default")
        if value is not ABSENT and value is not None:
            texts = [str(value)] + ([str(value).lower()] if isinstance(value, bool) else [])
            target = next((routes[text] for text in texts if text in routes), target)
        self.ended(state, entry, sight, {}, chosen=[target] if target else [])

    def do_loop(self, state: State, entry: Entry, node: Node, sight: Sight) -> None:
        params, inside = node.params, state.inside(node.id, entry.frame)
        rounds = inside[0].iteration if entry.turn == "resume" else 0
        repeats = params.get("times") is None or rounds < params["times"]
        repeats = repeats and (params.get("while") is None or params["while"](sight))
        if repeats and params.get("until") is not None and rounds:
            repeats = not params["until"](sight)
        if not repeats:
            self.ended(state, entry, sight, {})
        elif rounds >= (params.get("max") or params.get("times") or LIMIT):
            raise BrokenError("a loop without an end")
        elif not rounds:
            self.enter(state, entry, [(body, "shared", None, {}) for body in node.bodies])
        else:
            for frame in inside:
                frame.iteration += 1
            self.queue_bodies(state, entry, inside, "again")

    def do_subgraph(self, state: State, entry: Entry, node: Node, sight: Sight) -> None:
        inputs, outputs = node.params.get("inputs"), node.params.get("outputs")
        policy = node.params.get("policy") or ("shared" if inputs is None and outputs is None else "isolated")
        if entry.turn == "start":
            values = {key: sight.arg(path) for key, path in (inputs or {}).items()}
            values = {key: value for key, value in values.items() if value is not ABSENT}
            self.enter(state, entry, [(body, policy, None, values) for body in node.bodies])
            return
        board = state.seen(state.inside(node.id, entry.frame)[0].scope)
        output_values = {
            key: naive_paths.look(board.get(path[0], ABSENT), path[1:]) for key, path in (outputs or {}).items()
        }
        self.ended(state, entry, sight, {key: value for key, value in output_values.items() if value is not ABSENT})

    def do_branches(self, state: State, entry: Entry, node: Node, sight: Sight) -> None:
        if entry.turn == "start":
            bodies = [(body, "child", number, {"who": number}) for number, body in enumerate(node.bodies)]
            self.enter(state, entry, bodies)
            return
        boards = [state.seen(frame.scope) for frame in state.inside(node.id, entry.frame)]
        # Values, not references: what two branches have alike are two values from here on.
        merged = {key: [copy.deepcopy(board.get(key)) for board in boards] for key in node.params["merge"]}
        self.ended(state, entry, sight, merged)

    # -- frames ------------------------------------------------------------------------------------------------------

    def enter(self, state: State, entry: Entry, bodies: list[tuple[str, str, int | None, dict[str, Any]]]) -> None:
        outer, frames, step = state.frames[entry.frame], [], self.position + 1
        for region, policy, branch, inputs in bodies:
            state.opened += 1
            number, scope = state.opened, outer.scope
            if policy != "shared":
                name = f"{region}@{step}" if branch is None else f"{region}@{step}.{branch}"
                scope = number
                state.scopes[number] = Scope(name, outer.scope if policy == "child" else None)
            frame = Frame(number, entry.frame, entry.node, region, policy, branch, scope, outer.depth + 1)
            state.frames[number] = frame
            frames.append(frame)
            for key, value in inputs.items():
                state.write(scope, (key,), value)
        self.queue_bodies(state, entry, frames, "enter")

    def queue_bodies(self, state: State, entry: Entry, frames: list[Frame], phase: str) -> None:
        regions = self.recipe.regions
        front = [Entry(node, frame.id) for frame in frames for node in regions[frame.region].entry]
        self.advance(state, entry, [], front)
        state.row = Row(entry.node, phase, "ok")

    # -- where a step leads ------------------------------------------------------------------------------------------

    def edges(self, node: str, *kinds: str) -> list[Edge]:
        return [edge for edge in self.recipe.outgoing_edges if edge.source == node and edge.kind in kinds]

    def ways(self, state: State, entry: Entry) -> list[str]:
        """Return the targets of a node's ordinary edges that are taken."""
        sight, results, taken = Sight(state, state.frames[entry.frame].scope), [], False
        for edge in self.edges(entry.node, "sequential", "conditional", "loop_back", "parallel"):
            if edge.kind != "parallel" and taken and self.recipe.routing == "first":
                continue
            if edge.when is None or edge.when(sight):
                results.append(edge.target)
                taken = taken or edge.kind != "parallel"
        return results

    def advance(self, state: State, entry: Entry, back: list[Entry], front: list[Entry] | None = None) -> None:
        """Take an entry off the queue; put others to the front, or behind its own frame's."""
        rest = state.queue[1:]
        inner_places = [place for place, other in enumerate(rest) if state.within(other.frame, entry.frame)]
        at = max(inner_places, default=-1) + 1
        queue = self.joined(state, [*(front or []), *rest[:at], *back, *rest[at:]])
        frame = state.frames[entry.frame]
        if frame.parent is not None:
            group = state.inside(str(frame.owner), frame.parent)
            if not any(state.within(other.frame, top.id) for other in queue for top in group):
                queue = [Entry(str(frame.owner), frame.parent, "resume"), *queue]
        state.queue = queue

    def joined(self, state: State, queue: list[Entry]) -> list[Entry]:
        """Let each join stand once, and behind those of its frame that can still reach it."""
        for join in dict.fromkeys(entry for entry in queue if self.recipe.nodes[entry.node].kind == "join"):
            place = queue.index(join)
            others = [entry for entry in queue if entry != join]
            if any(other.frame == join.frame and self.leads(other.node, join.node) for other in others):
                place = max(n for n, other in enumerate(others) if state.within(other.frame, join.frame)) + 1
            queue = [*others[:place], join, *others[place:]]
        return queue

    def leads(self, node: str, join: str) -> bool:
        """Say whether a way leads from a node to a join."""
        border, reached = [node], set()
        while border:
            current = border.pop()
            following = {
                edge.target
                for edge in self.edges(current, "sequential", "conditional", "loop_back", "parallel", "route")
            }
            border += following - reached
            reached |= following
        return join in reached

    # -- failures ----------------------------------------------------------------------------------------------------

    def handlers(self, node: str, late: bool) -> list[str]:
        handlers = [edge.target for edge in self.edges(node, "timeout" if late else "error")]
        return (
            self.handlers(node, late=False) if late and not handlers and self.recipe.timeouts == "error" else handlers
        )

    def fail(self, state: State, entry: Entry, failure: FailedError) -> None:
        """Commit a failed step: nothing that it wrote stays, and whoever handles it is next."""
        node = self.recipe.nodes[entry.node]
        state.used += node.counted and entry.turn == "start"
        state.failed, state.late = None, failure.late
        targets, onward = self.handlers(node.id, failure.late), None
        trial = state.copy()
        if node.kind == "keeper":
            self.keep(trial, entry, failure)
        if node.rescue is not None:
            with contextlib.suppress(BrokenError, naive_paths.RefusedError):
                onward = self.rescued(trial, entry, node.rescue)
                state = trial
        if onward is None and node.kind == "keeper":
            self.keep(state, entry, failure)
        if targets or onward is not None or node.kind == "keeper":
            state.close(state.inside(entry.node, entry.frame) if entry.turn != "start" else [])
            self.advance(state, entry, [], [*(Entry(target, entry.frame) for target in targets), *(onward or [])])
            state.row = Row(entry.node, "run" if entry.turn == "start" else "leave", "error")
            self.commit(state)
            return
        state.row = Row(entry.node, "run", "error")
        self.uncaught(state, entry, failure)

    def rescued(self, state: State, entry: Entry, rescue: Rescue) -> list[Entry]:
        """Leave the node's inside, write what its rescue writes; return where it leads."""
        state.close(state.inside(entry.node, entry.frame) if entry.turn != "start" else [])
        for key, value in rescue.writes.items():
            state.write(state.frames[entry.frame].scope, (key,), value)
        targets = self.ways(state, entry) if rescue.route is None else rescue.route
        return [Entry(target, entry.frame) for target in targets]

    def keep(self, state: State, entry: Entry, failure: FailedError) -> None:
        for path, value in failure.own:
            try:
                state.write(state.frames[entry.frame].scope, path, value)
            except naive_paths.RefusedError:
                return

    def uncaught(self, state: State, entry: Entry, failure: FailedError) -> None:
        """Hand a failure to the nearest composite node around that handles it, or stand there; end other branches."""
        queue, frame, catcher = state.queue, state.frames[entry.frame], None
        while frame.parent is not None and catcher is None:
            owner = self.recipe.nodes[str(frame.owner)]
            if self.handlers(owner.id, failure.late) or owner.rescue is not None:
                catcher = Entry(owner.id, frame.parent, "fail")
            frame = state.frames[frame.parent]
        if catcher is None:
            state.failed = entry
        else:
            inside = state.inside(catcher.node, catcher.frame)
            remaining = [other for other in queue if not any(state.within(other.frame, top.id) for top in inside)]
            state.queue = [catcher, *remaining]
        self.commit(state)
        self.cancel(queue, entry, catcher)

    def cancel(self, queue: list[Entry], failed: Entry, catcher: Entry | None) -> None:
        """One more row for each other branch that the failure ends."""
        state = self.now
        seen = {state.lane(failed.frame)}
        for other in queue:
            lane = state.lane(other.frame)
            if lane in seen or lane == 0 or state.within(failed.frame, lane):
                continue
            if catcher is not None and not state.within(lane, catcher.frame):
                continue
            seen.add(lane)
            after = self.now.copy()
            after.row = Row(other.node, "run", "cancelled")
            self.commit(after)

    def fell(self, state: State, entry: Entry) -> None:
        """Leave a composite node whose inside has failed by its own error edges."""
        rescue = self.recipe.nodes[entry.node].rescue
        try:
            onward = [] if rescue is None else self.rescued(state, entry, rescue)
        except (BrokenError, naive_paths.RefusedError) as error:
            raise FailedError(late=state.late) from error  # its own rescue is none: what failed inside is told
        state.close(state.inside(entry.node, entry.frame))
        handlers = [Entry(name, entry.frame) for name in self.handlers(entry.node, state.late)]
        self.advance(state, entry, [], [*handlers, *onward])
        state.row = Row(entry.node, "leave", "error")
