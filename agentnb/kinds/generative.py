"""A node that pursues a goal and fills a JSON Schema: by a bound callable, a model, or simulated data."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from agentnb.board.masking import mask_value
from agentnb.board.values import freeze
from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.errors import ExecutionError, Problem, RecipeError
from agentnb.expressions.json_schema import Fault, Schema
from agentnb.kinds.agent import find_simulated_answer, is_simulated_answer, needs_model
from agentnb.kinds.context import Text, compile_text
from agentnb.recipe.model import Node
from agentnb.secrets import is_secret
from agentnb.text import mask_head, safe_repr
from agentnb.world.call_arguments import find_options, get_function_name, get_options, make_settings, takes_board
from agentnb.world.effect import Effect
from agentnb.world.llm.structured import find_json
from agentnb.world.llm.text import to_json_text, to_text
from agentnb.world.sample_data import fill, format_fault
from agentnb.world.world import count_earlier_calls

TRIES: Final = 3  # attempts in all to obtain an answer that matches
MOST_BOARD: Final = 20_000  # characters of the blackboard sent to a model
MOST_FAULTS: Final = 10
MOST_SAID: Final = 4_000  # characters of a refused answer sent back to the model
SYSTEM: Final = (
    "Work towards the goal that you are given, with what stands on the blackboard. "
    "Answer with one JSON value that fits the JSON Schema, and with nothing else: no words around it."
)
_GIVEN: Final = ("goal", "schema", "board")  # what a bound callable may request by parameter name
Messages = list[dict[str, str]]


def bind(node: Node, world: Any) -> Perform:
    """Return the function that fills `params["schema"]` towards `params["goal"]` and writes the result.

    Goal and prompt are texts or templates.

    Answers come from a callable bound under the node's id (it receives the board if it accepts an argument, and by name
    what it calls `goal`, `schema` or `board`), otherwise from the model, which receives `params["prompt"]` first,
    otherwise from simulation: then the answer is the next one of `params["simulated"]`, or is generated from the schema
    and the run's seed. A model whose answer does not match receives the faults and is asked again, 3 times in all. An
    object is merged into the board; anything else is written under the node's id.

    Of `params["solver"]`: with the strategy `ensemble`, `n_samples` answers are requested and one is chosen by
    `aggregation_method` (`majority_vote` by default; `weighted_merge` takes the majority of each key, `best_of_n` the
    first that matches); `max_iterations` below 3 limits the attempts to obtain a matching answer. The strategy
    `tree_search` is run as `standard`. `depth_limit`, `diversity_threshold`, `enable_dissenter`, `consensus_threshold`
    and `beam_width` have no effect; `params["tools"]` are only displayed.

    Raises:
        RecipeError: R203, its bound object is not callable; R202, the callable requires arguments that it does not
            receive.
        ExecutionError: at a step: X407, no answer matches the schema; X408, none can be generated; X409, the schema
            itself is invalid.
    """
    task = _GenerativeTask.of(node, world)
    asking, usual = _ask_model(task, find_options(world, task.options)), needs_model(node, world)
    own = _simulate(task) if world.tools.get(node.id) is None else _make_bound_effect(task, world.tool(node.id, node))
    tools = {"tools": list(node.params["tools"])} if node.params.get("tools") else {}

    async def perform(work: Work) -> Outcome:
        task.check()
        by_model = work.asks_model(usual)
        value, note = await (asking(work) if by_model else _answer_directly(task, work, own(work)))
        by = "model" if by_model else "simulated" if is_simulated_answer(work) else "callable"
        goal = task.goal(work.board)
        writes = dict(value) if isinstance(value, Mapping) else {node.id: value}
        thought = f"Filled {_pluralize(len(writes), 'field')} towards: {goal}{note}"
        action = {"goal": goal, "by": by, **tools}
        return Outcome(writes, thought=thought, inputs={"goal": goal}, action=action, observation=writes)

    return perform


# Returns the chosen answer and a description of how it was obtained.
Ask = Callable[[Work], Awaitable[tuple[Any, str]]]
EffectOf = Callable[[Work], Effect]


@dataclass(frozen=True, slots=True)
class _GenerativeTask:
    """What a node is to do, computed once."""

    node: Node
    goal: Text
    prompt: Text
    schema: Schema
    options: Mapping[str, Any]
    max_attempts: int
    samples: int
    method: str

    @classmethod
    def of(cls, node: Node, world: Any) -> _GenerativeTask:
        params = node.params
        goal, source = (
            compile_text(params.get("goal") or node.label or node.id, world.strict),
            params.get("schema", True),
        )
        prompt = compile_text(params.get("prompt"), world.strict)
        solver_params = params.get("solver")
        solver: Mapping[str, Any] = solver_params if isinstance(solver_params, Mapping) else {}
        samples = int(solver.get("n_samples") or 1) if solver.get("strategy") == "ensemble" else 1
        tries = max(1, min(TRIES, int(solver.get("max_iterations") or TRIES)))
        method = str(solver.get("aggregation_method") or "majority_vote")
        return cls(node, goal, prompt, Schema(source), get_options(node), tries, samples, method)

    @property
    def where(self) -> str:
        return str(self.node.place or f"node {self.node.id!r}")

    def check(self) -> None:
        """Raise for a schema that no value could match."""
        wrong = self.schema.wrong
        if wrong is not None:
            raise ExecutionError(
                Problem("X409", f"the schema of node {self.node.id!r} is not a JSON Schema", self.where,
                        _describe(wrong),
                        "fix the node's schema")
            )  # fmt: skip

    def faults(self, value: Any) -> list[str]:
        """Return what is wrong with a value: empty if it matches."""
        return [_describe(fault) for fault in self.schema.faults(value)]

    def read(self, answer: Any) -> tuple[Any, list[str]]:
        """Return the value in a model's answer, and what is wrong with it."""
        try:
            value = find_json(answer)
        except ValueError as error:
            return None, [str(error)]
        return value, self.faults(value)

    def make_refusal(self, answers: Sequence[Any], faults: Sequence[str], performer: str) -> ExecutionError:
        """Return X407: what is wrong with the last answer, and its beginning."""
        more = [f"and {len(faults) - MOST_FAULTS} more"] if len(faults) > MOST_FAULTS else []
        content = getattr(answers[-1], "content", answers[-1])
        times = f" in {len(answers)} answers" if len(answers) > 1 else ""
        return ExecutionError(
            Problem(
                "X407",
                f"{performer} gave node {self.node.id!r} no answer that matches its schema{times}",
                self.where,
                f"{'; '.join([*faults[:MOST_FAULTS], *more])}. It answered: {safe_repr(freeze(content), limit=300)}",
                "fix the schema or the prompt, use another model, or go back and run it again",
            )
        )


def _describe(fault: Fault) -> str:
    """Return a fault on one line; under a secret's name only the rule, since the message quotes the value."""
    secret = any(is_secret(key) for key in fault.path)
    return format_fault(fault._replace(message=fault.rule or "does not fit") if secret else fault)


def _pluralize(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


# -- answers -----------------------------------------------------------------------------------------------------


async def _answer_directly(task: _GenerativeTask, work: Work, effect: Effect) -> tuple[Any, str]:
    """Return the answer of a node's bound callable, or a simulated one."""
    answer = await work.call(effect)
    value, simulated = getattr(answer, "content", answer), is_simulated_answer(work)
    faults = task.faults(value)
    if faults and isinstance(value, str) and not simulated:  # it may be a model's text
        value, faults = task.read(value)
    if faults:
        raise task.make_refusal([answer], faults, "the simulated answer" if simulated else "its bound function")
    return value, " (simulated)" if simulated else ""


def _make_bound_effect(task: _GenerativeTask, function: Callable[..., Any]) -> EffectOf:
    name, call = task.node.id, _call_of(task, function)
    return lambda work: Effect("agent", name, {}, target=lambda: call(work.board), reads_board=True, **task.options)


def _call_of(task: _GenerativeTask, function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a call of a function with the board: passed by name to goal, schema or board, otherwise as the first one.

    R202: a function requires arguments that it does not receive

    Raises:
        RecipeError: R202, it requires other arguments.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin without a signature
        return function
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [name for name, taken in signature.parameters.items() if name in _GIVEN and taken.kind in by_name]
    first = next(iter(signature.parameters), "")
    passes_board = takes_board(function) and first not in named

    def call(board: Any) -> Any:
        inputs = {"goal": task.goal(board), "schema": deepcopy(task.schema.rules), "board": board}
        return function(*((board,) if passes_board else ()), **{name: inputs[name] for name in named})

    try:
        signature.bind(*((None,) if passes_board else ()), **dict.fromkeys(named))
    except TypeError as error:
        called = get_function_name(function)
        raise RecipeError(
            Problem("R202", f"{called} cannot be called for {task.node.id!r}: {error}", task.where,
                    f"it receives the board, and by name any of {', '.join(_GIVEN)}; "
                    f"its signature is {called}{signature}", "add a default to every other parameter")
        ) from None  # fmt: skip
    return call


def _simulate(task: _GenerativeTask) -> EffectOf:
    node, script = task.node, task.node.params.get("simulated") or ()

    def effect(work: Work) -> Effect:
        if script:
            answer = find_simulated_answer(script, work)
            return Effect("agent", node.id, {}, target=lambda: answer, is_simulated=True, **task.options)
        seed = f"{work.run.seed}:{node.id}:{count_earlier_calls(work, 'agent', node.id)}"

        def make() -> Any:
            return fill(task.schema, seed, node.id, task.where)

        return Effect("agent", node.id, {}, target=make, is_simulated=True, **task.options)

    return effect


def _ask_model(task: _GenerativeTask, options: Mapping[str, Any]) -> Ask:
    """Ask the model for the requested number of answers, and then again until one matches."""
    settings = make_settings(task.node.params.get("model"))

    async def ask(work: Work) -> tuple[Any, str]:
        messages = _make_messages(task, work)
        answers: list[Any] = []
        fitting: list[Any] = []
        faults: list[str] = []
        while len(answers) < task.samples + task.max_attempts - 1:
            request = {**settings, "messages": messages}
            answer = await work.call(Effect("llm", task.node.id, request, **options))
            answers.append(answer)
            value, wrong = task.read(answer)
            if wrong:
                faults = wrong
            else:
                fitting.append(value)
            if len(answers) >= task.samples:
                if fitting:
                    return _choose(task, fitting, len(answers))
                messages = [*messages, *_make_correction(answer, faults)]
        raise task.make_refusal(answers, faults, "the model")

    return ask


# -- prompts -----------------------------------------------------------------------------------------------------


def _make_messages(task: _GenerativeTask, work: Work) -> Messages:
    prompt = task.prompt(work.board)
    prompt_text = (
        f"Goal: {task.goal(work.board)}\n\nThe blackboard:\n{_format_board(work.board)}\n\n"
        f"The JSON Schema of your answer:\n{to_json_text(task.schema.rules)}"
    )
    system = f"{prompt}\n\n{SYSTEM}" if prompt else SYSTEM
    return [{"role": "system", "content": system}, {"role": "user", "content": prompt_text}]


def _make_correction(answer: Any, faults: Sequence[str]) -> Messages:
    content = getattr(answer, "content", answer)
    text = to_text(content)
    wrong = "\n".join(f"- {fault}" for fault in faults[:MOST_FAULTS])
    instruction = (
        f"This does not fit the JSON Schema:\n{wrong}\nAnswer again: the whole value, corrected, and nothing else."
    )
    return [{"role": "assistant", "content": mask_head(text, MOST_SAID)}, {"role": "user", "content": instruction}]


def _format_board(board: Mapping[str, Any]) -> str:
    """Return the blackboard as JSON, its secrets masked; if it is too large, the longest values are truncated."""
    texts = {key: to_json_text(mask_value(freeze(board[key]), key)) for key in board}
    if sum(map(len, texts.values())) > MOST_BOARD:
        share = max(100, MOST_BOARD // len(texts))
        texts = {key: _cut(text, share) for key, text in texts.items()}
    lines = ",\n".join(f"{to_json_text(mask_value(key))}: {text}" for key, text in texts.items())
    return "{" + _cut(lines, 2 * MOST_BOARD) + "}"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text) - longest} characters left out)"


# -- selection ---------------------------------------------------------------------------------------------------


def _choose(task: _GenerativeTask, fitting: Sequence[Any], attempts: int) -> tuple[Any, str]:
    """Return one of the matching answers, and a description of the choice."""
    if task.samples == 1:
        refused = attempts - 1
        return fitting[0], f" (after {_pluralize(refused, 'answer')} that did not fit)" if refused else ""
    if task.method == "best_of_n":
        return fitting[0], f" (the first that fits of {attempts} answers)"
    if task.method == "weighted_merge" and all(isinstance(value, Mapping) for value in fitting):
        value = _find_majority_by_key(fitting)
        if not task.faults(value):
            return value, f" (each field by the majority of {attempts} answers)"
    value, agreed = _find_majority(fitting)
    return value, f" ({agreed} of {attempts} answers agree)"


def _find_majority(values: Sequence[Any]) -> tuple[Any, int]:
    """Return the most frequent value and its count; on a tie the first one."""
    texts = [json.dumps(value, sort_keys=True, default=str) for value in values]
    winner, votes = Counter(texts).most_common(1)[0]
    return values[texts.index(winner)], votes


def _find_majority_by_key(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return an object with the most frequent value of each key; a key that most of them lack is left out."""
    chosen = {}
    for key in dict.fromkeys(key for value in values for key in value):
        (majority,), _ = _find_majority([[value[key]] if key in value else [_ABSENT] for value in values])
        if majority is not _ABSENT:
            chosen[key] = majority
    return chosen


_ABSENT: Final = object()

KIND = Kind("generative", bind, step_type="REASONING")
