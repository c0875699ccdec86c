"""generative: a node that works towards a goal and fills a JSON Schema: bound, else a model's answer, else made up."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from agentnb.board.secrets import hidden, is_secret, masked, short
from agentnb.board.values import freeze
from agentnb.engine.work import Effect, Kind, Outcome, Perform, Work
from agentnb.errors import ExecutionError, Problem, RecipeError
from agentnb.expressions.schemas import Fault, Schema
from agentnb.recipe.model import Node
from agentnb.world.calls import asked_of, options_of, positional, settings_of
from agentnb.world.filled import filled, told
from agentnb.world.llm.structured import json_in
from agentnb.world.llm.wording import in_words, json_text
from agentnb.world.world import asked_before

TRIES: Final = 3  # how often it is asked in all, until an answer fits
MOST_BOARD: Final = 20_000  # characters of the blackboard that a model is shown
MOST_FAULTS: Final = 10
MOST_SAID: Final = 4_000  # characters of a refused answer that the model is shown again
SYSTEM: Final = (
    "Work towards the goal that you are given, with what stands on the blackboard. "
    "Answer with one JSON value that fits the JSON Schema, and with nothing else: no words around it."
)
_GIVEN: Final = ("goal", "schema", "board")  # what a bound callable may ask for by name
Messages = list[dict[str, str]]


def bind(node: Node, world: Any) -> Perform:
    """Return the function that fills `params["schema"]` on the way to `params["goal"]`, and writes what it got.

    Who answers: a callable bound under the node's id (it gets the board, where it takes an argument, and by name what
    it calls `goal`, `schema` or `board`), else the model, which is told `params["prompt"]` first, else nobody: then it
    is one of `params["simulated"]` in turn, or is made up from the schema and the run's seed. A model whose answer does
    not fit is told what is wrong and asked again, 3 times in all. An object is merged into the board; anything else is
    written under the node's id.

    Of `params["solver"]`: with the strategy `ensemble`, `n_samples` answers are asked for and one is taken by
    `aggregation_method` (`majority_vote` where there is none; `weighted_merge` takes the majority of each key,
    `best_of_n` the first that fits); `max_iterations` below 3 bounds how often it is asked for one that fits. The
    strategy `tree_search` is done as `standard`. `depth_limit`, `diversity_threshold`, `enable_dissenter`,
    `consensus_threshold` and `beam_width` have no effect; `params["tools"]` are shown only.

    Raises:
        RecipeError: R203, what is bound to it is not callable; R202, it needs what it is not given.
        ExecutionError: at a step: X407, no answer fits the schema; X408, none can be made up; X409, the schema itself
            is wrong.
    """
    task = _Task.of(node)
    if world.tools.get(node.id) is not None:
        by, ask = "callable", _bound(task, world.tool(node.id, node))
    elif world.llm is not None:
        by, ask = "model", _asking(task, asked_of(world, task.options))
    else:
        by, ask = "simulated", _simulated(task)
    tools = {"tools": list(node.params["tools"])} if node.params.get("tools") else {}
    action = freeze({"goal": task.goal, "by": by, **tools})

    async def perform(work: Work) -> Outcome:
        task.check()
        value, note = await ask(work)
        writes = dict(value) if isinstance(value, Mapping) else {node.id: value}
        thought = f"Filled {_counted(len(writes), 'field')} towards: {task.goal}{note}"
        return Outcome(writes, thought=thought, inputs={"goal": task.goal}, action=action, observation=writes)

    return perform


# Returns the answer that is taken, and what is said of how it came about.
Ask = Callable[[Work], Awaitable[tuple[Any, str]]]


@dataclass(frozen=True, slots=True)
class _Task:
    """What a node is to do, worked out once."""

    node: Node
    goal: str
    schema: Schema
    options: Mapping[str, Any]
    tries: int
    samples: int
    method: str

    @classmethod
    def of(cls, node: Node) -> _Task:
        params = node.params
        goal, source = str(params.get("goal") or node.label or node.id), params.get("schema", True)
        given = params.get("solver")
        solver: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        samples = int(solver.get("n_samples") or 1) if solver.get("strategy") == "ensemble" else 1
        tries = max(1, min(TRIES, int(solver.get("max_iterations") or TRIES)))
        method = str(solver.get("aggregation_method") or "majority_vote")
        return cls(node, goal, Schema(source), options_of(node), tries, samples, method)

    @property
    def where(self) -> str:
        return str(self.node.place or f"node {self.node.id!r}")

    def check(self) -> None:
        """Raise for a schema that nothing could fit."""
        wrong = self.schema.wrong
        if wrong is not None:
            raise ExecutionError(
                Problem("X409", f"the schema of node {self.node.id!r} is no JSON Schema", self.where, _told(wrong),
                        "mend the node's schema")
            )  # fmt: skip

    def faults(self, value: Any) -> list[str]:
        """Return what is wrong with a value: nothing, where it fits."""
        return [_told(fault) for fault in self.schema.faults(value)]

    def read(self, answer: Any) -> tuple[Any, list[str]]:
        """Return the value in a model's answer, and what is wrong with it."""
        try:
            value = json_in(answer)
        except ValueError as error:
            return None, [str(error)]
        return value, self.faults(value)

    def refused(self, answers: Sequence[Any], faults: Sequence[str], who: str) -> ExecutionError:
        """Return X407: of the last answer what is wrong with it, and how it began."""
        more = [f"and {len(faults) - MOST_FAULTS} more"] if len(faults) > MOST_FAULTS else []
        content = getattr(answers[-1], "content", answers[-1])
        times = f" in {len(answers)} answers" if len(answers) > 1 else ""
        return ExecutionError(
            Problem(
                "X407",
                f"{who} gave node {self.node.id!r} no answer that fits its schema{times}",
                self.where,
                f"{'; '.join([*faults[:MOST_FAULTS], *more])}. It answered: {short(freeze(content), width=300)}",
                "mend the schema or the prompt, take another model, or go back and run it again",
            )
        )


def _told(fault: Fault) -> str:
    """Return a fault in one line; under a secret's name only the rule, for the message quotes the value."""
    secret = any(is_secret(key) for key in fault.path)
    return hidden(told(fault._replace(message=fault.rule or "does not fit") if secret else fault))


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


# -- who answers -------------------------------------------------------------------------------------------------


def _bound(task: _Task, function: Callable[..., Any]) -> Ask:
    name, call = task.node.id, _call_of(task, function)

    async def ask(work: Work) -> tuple[Any, str]:
        answer = await work.call(Effect("agent", name, {}, target=lambda: call(work.board), **task.options))
        value = getattr(answer, "content", answer)
        faults = task.faults(value)
        if faults and isinstance(value, str):  # it may be a model's text
            value, faults = task.read(value)
        if faults:
            raise task.refused([answer], faults, "what is bound to it")
        return value, ""

    return ask


def _call_of(task: _Task, function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return what calls a function with the board: by name what it calls goal, schema or board, else the first one.

    R202: a function needs what it is not given.

    Raises:
        RecipeError: R202, it needs something else besides.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin that does not tell
        return function
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [name for name, taken in signature.parameters.items() if name in _GIVEN and taken.kind in by_name]
    first = next(iter(signature.parameters), "")
    whole = bool(positional(function)) and first not in named

    def call(board: Any) -> Any:
        given = {"goal": task.goal, "schema": deepcopy(task.schema.rules), "board": board}
        return function(*((board,) if whole else ()), **{name: given[name] for name in named})

    try:
        signature.bind(*((None,) if whole else ()), **dict.fromkeys(named))
    except TypeError as error:
        called = getattr(function, "__qualname__", repr(function))
        raise RecipeError(
            Problem("R202", f"{called} cannot be called for {task.node.id!r}: {error}", task.where,
                    f"it is given the board, and by name what it calls {', '.join(_GIVEN)}; "
                    f"its signature is {called}{signature}", "give each other parameter a default")
        ) from None  # fmt: skip
    return call


def _simulated(task: _Task) -> Ask:
    node, script = task.node, task.node.params.get("simulated") or ()

    async def ask(work: Work) -> tuple[Any, str]:
        number = asked_before(work, "agent", node.id)
        seed = f"{work.run.seed}:{node.id}:{number}"

        def made() -> Any:
            return script[min(number, len(script) - 1)] if script else filled(task.schema, seed, node.id, task.where)

        value = await work.call(Effect("agent", node.id, {}, target=made, made_up=True, **task.options))
        faults = task.faults(value)
        if faults:
            raise task.refused([value], faults, "the simulated answer")
        return value, " (simulated)"

    return ask


def _asking(task: _Task, options: Mapping[str, Any]) -> Ask:
    """Ask the model: for as many answers as are wanted, and then again until one fits."""
    settings = settings_of(task.node.params.get("model"))

    async def ask(work: Work) -> tuple[Any, str]:
        messages = _messages(task, work)
        answers: list[Any] = []
        fitting: list[Any] = []
        faults: list[str] = []
        while len(answers) < task.samples + task.tries - 1:
            given = {**settings, "messages": messages}
            answer = await work.call(Effect("llm", task.node.id, given, **options))
            answers.append(answer)
            value, wrong = task.read(answer)
            if wrong:
                faults = wrong
            else:
                fitting.append(value)
            if len(answers) >= task.samples:
                if fitting:
                    return _chosen(task, fitting, len(answers))
                messages = [*messages, *_correction(answer, faults)]
        raise task.refused(answers, faults, "the model")

    return ask


# -- what a model is told ----------------------------------------------------------------------------------------


def _messages(task: _Task, work: Work) -> Messages:
    prompt = task.node.params.get("prompt")
    asked = (
        f"Goal: {task.goal}\n\nThe blackboard:\n{_board_text(work.board)}\n\n"
        f"The JSON Schema of your answer:\n{json_text(task.schema.rules)}"
    )
    system = f"{prompt}\n\n{SYSTEM}" if prompt else SYSTEM
    return [{"role": "system", "content": system}, {"role": "user", "content": asked}]


def _correction(answer: Any, faults: Sequence[str]) -> Messages:
    content = getattr(answer, "content", answer)
    said = in_words(content)
    wrong = "\n".join(f"- {fault}" for fault in faults[:MOST_FAULTS])
    asked = f"This does not fit the JSON Schema:\n{wrong}\nAnswer again: the whole value, corrected, and nothing else."
    return [{"role": "assistant", "content": hidden(said)[:MOST_SAID]}, {"role": "user", "content": asked}]


def _board_text(board: Mapping[str, Any]) -> str:
    """Return the blackboard as JSON, its secrets masked; of one that is too large the longest values are cut."""
    texts = {key: hidden(json_text(masked(freeze(board[key]), key))) for key in board}
    if sum(map(len, texts.values())) > MOST_BOARD:
        share = max(100, MOST_BOARD // len(texts))
        texts = {key: _cut(text, share) for key, text in texts.items()}
    lines = ",\n".join(f"{hidden(json_text(key))}: {text}" for key, text in texts.items())
    return "{" + _cut(lines, 2 * MOST_BOARD) + "}"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text) - longest} characters left out)"


# -- one of several answers --------------------------------------------------------------------------------------


def _chosen(task: _Task, fitting: Sequence[Any], asked: int) -> tuple[Any, str]:
    """Return one of the answers that fit, and what is said of it."""
    if task.samples == 1:
        refused = asked - 1
        return fitting[0], f" (after {_counted(refused, 'answer')} that did not fit)" if refused else ""
    if task.method == "best_of_n":
        return fitting[0], f" (the first that fits of {asked} answers)"
    if task.method == "weighted_merge" and all(isinstance(value, Mapping) for value in fitting):
        value = _by_key(fitting)
        if not task.faults(value):
            return value, f" (each field by the majority of {asked} answers)"
    value, agreed = _majority(fitting)
    return value, f" ({agreed} of {asked} answers agree)"


def _majority(values: Sequence[Any]) -> tuple[Any, int]:
    """Return the value that most of them are, and how many; of as many votes the first one."""
    texts = [json.dumps(value, sort_keys=True, default=str) for value in values]
    winner, votes = Counter(texts).most_common(1)[0]
    return values[texts.index(winner)], votes


def _by_key(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return an object whose every key is what most of them say; a key that most of them lack is left out."""
    chosen = {}
    for key in dict.fromkeys(key for value in values for key in value):
        (found,), _ = _majority([[value[key]] if key in value else [_ABSENT] for value in values])
        if found is not _ABSENT:
            chosen[key] = found
    return chosen


_ABSENT: Final = object()

KIND = Kind("generative", bind, step_type="REASONING", shape="folder")
