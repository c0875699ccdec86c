"""Has a value scored and routes by the score: passed, or back for a refinement with the critique, up to a limit.

R135: a judge cannot be called with the value alone
X403: a judge's answer contains no score, or one outside 0 to 1 although the threshold is within
X404: there is no value to judge
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentnb.board.values import ABSENT
from agentnb.engine.core.work import Kind, Outcome, Perform, Work
from agentnb.errors import ExecutionError, Problem, RecipeError
from agentnb.expressions.paths import format_path
from agentnb.kinds.agent import find_simulated_answer, is_simulated_answer, needs_model
from agentnb.kinds.context import Text, compile_text
from agentnb.recipe.descriptions import list_names
from agentnb.recipe.model import Node, RouteTarget
from agentnb.text import safe_repr, safe_str
from agentnb.world.call_arguments import find_options, get_function_name, get_options, make_settings
from agentnb.world.effect import Effect
from agentnb.world.llm.text import to_text
from agentnb.world.llm.verdict import find_verdict
from agentnb.world.world import count_earlier_calls

_WANTED: Final = (
    'Answer with JSON alone: {"score": a number from 0 (worst) to 1 (best), "critique": what to do better, as a string}'
)
EffectOf = Callable[[Work, Any], Effect]


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of an evaluator: the passing score, the maximum number of refinements, and the routes.

    An empty route ends the run or, within a parallel branch, the branch: then `meets` is the node after it. `feedback`
    is the board key for the critique, `name` the name of the judged value.
    """

    name: str
    threshold: float
    refinements: int
    passed: str
    failed: str
    feedback: str
    meets: str = ""

    @classmethod
    def of(cls, node: Node, name: str) -> Rules:
        """Return the rules stated by a node's `params`."""
        params = node.params
        return cls(
            name,
            params.get("threshold", 0.5),
            params.get("max_refinements", 1),
            params.get("pass_route", ""),
            params.get("fail_route", ""),
            params.get("feedback", "feedback"),
            params.get("meets", ""),
        )


def bind(node: Node, world: Any) -> Perform:
    """Return the function that has the value at `params["target"]` judged and chooses the route.

    The judge is the tool named by `params["ref"]`, otherwise the session's model, otherwise a simulated score. A score
    of at least `threshold` leads to `pass_route`. Any other writes the critique to `feedback` and leads to
    `fail_route`; after `max_refinements` refinements since it last passed, the run ends there.

    Raises:
        RecipeError: R135, the judge cannot be called with the value.
    """
    target = node.params["target"]
    path = (target,) if isinstance(target, str) else tuple(target)
    rules, usual = Rules.of(node, format_path(path)), needs_model(node, world)
    model, own = _make_judges(node, world, str(path[-1]))

    async def perform(work: Work) -> Outcome:
        work.reads[path[0]] = None
        value = work.arg(path)
        if value is ABSENT:
            raise _make_nothing_error(work, rules.name)
        seen = work.scope.get_at(path)  # the board's frozen value: a judge may change its own copy
        effect = (model if work.asks_model(usual) else own)(work, value)
        answer = await work.call(effect)
        try:
            score, critique = parse_verdict(answer, rules.threshold)
        except ValueError as error:
            raise _make_score_error(node, effect, answer, error) from None
        return _make_outcome(
            rules, score, critique, _count_refinements(work, rules), seen, simulated=is_simulated_answer(work)
        )

    return perform


def parse_verdict(answer: Any, threshold: float | None = None) -> tuple[float, Any]:
    """Return the score in a judge's answer, and its critique or None.

    An answer that only states whether the value passes has the score 1 or 0.

    Raises:
        ValueError: the score is missing or not finite; or it is outside 0 to 1 although the threshold is within.
    """
    verdict = find_verdict(answer)
    score = float(bool(verdict.passed)) if verdict.score is None else verdict.score
    if threshold is not None and 0 <= threshold <= 1 and not 0 <= score <= 1:
        raise ValueError(f"the score is {score:g}, and the threshold {threshold:g} is for scores from 0 to 1")
    return score, verdict.comment


def _count_refinements(work: Work, rules: Rules) -> int:
    """Return the refinements since the node last passed, read from its last step, so that forks agree."""
    note = work.run.last_note(work.node.id, ("agent", "llm"))
    observation = note and note.observation
    return (
        0
        if not isinstance(observation, Mapping) or observation["passed"]
        else min(observation["refinement"], max(rules.refinements, 0))
    )


def _make_outcome(rules: Rules, score: float, critique: Any, requests: int, seen: Any, *, simulated: bool) -> Outcome:
    passed = score >= rules.threshold
    may_refine = not passed and requests < rules.refinements
    requests += may_refine
    target = rules.passed if passed else rules.failed if may_refine else ""
    texts, limit = _score_texts(score, rules.threshold)
    below = f"Score {texts} is below {limit}"
    end, forced = "go to the end", "forced end"
    if rules.meets:
        end, forced = f"go to {rules.meets!r}, where the branches meet", "forced end of the branch"
    decision = f"go to {target!r}" if target else end
    if passed:
        thought = f"Score {texts} has reached {limit}: passed, {decision}"
    elif may_refine:
        thought = f"{below}: refinement {requests} of {rules.refinements}, {decision}"
    elif rules.refinements > 0:
        thought = f"{below}, and all {rules.refinements} refinements are used: {forced}"
    else:
        thought = f"{below}, and no refinement can be requested: {forced}"
    critique = critique if critique is not None or passed else f"{below}."
    observation = {
        "score": score,
        "passed": passed,
        "threshold": rules.threshold,
        "critique": critique,
        "refinement": requests,
        "decision": target or rules.meets or None,
        "forced": not passed and not may_refine,
        "simulated": simulated,
    }
    return Outcome(
        {} if passed else {rules.feedback: critique},
        route=(RouteTarget(target, "pass" if passed else "fail"),) if target else (),
        value=score,
        thought=f"{thought} (simulated)" if simulated else thought,
        observation=observation,
        inputs={rules.name: seen},
        score=score,
    )


def _score_texts(score: float, threshold: float) -> tuple[str, str]:
    """Return a score and the threshold with two decimals; in full if those would look equal."""
    texts = f"{score:.2f}", f"{threshold:.2f}"
    return texts if texts[0] != texts[1] or score == threshold else (repr(score), repr(threshold))


# ------------------------------------------------------------------------------------------------ judges


def _make_judges(node: Node, world: Any, name: str) -> tuple[EffectOf, EffectOf]:
    """Return two factories of the effect that asks for a value's score: with the model, and without one."""
    ref, options = str(node.params.get("ref", node.id)), get_options(node)
    model = _ask_model(
        node, ref, name, find_options(world, options), compile_text(node.params.get("prompt"), world.strict)
    )
    if world.tools.get(ref) is None:
        return model, _simulate(node, ref, name, options)
    call = _adapt_judge(node, world.tool(ref, node), name)
    return model, lambda _work, value: Effect("agent", ref, {name: value}, target=call, **options)


def _adapt_judge(node: Node, function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a judge that accepts the value under its name: unchanged if it does, otherwise as its only argument.

    Raises:
        RecipeError: R135, it accepts neither, or requires more.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin without a signature
        return lambda **given: function(*given.values())
    for positional, named in (((), {name: None}), ((None,), {})):
        try:
            signature.bind(*positional, **named)
        except TypeError:
            continue
        return function if named else lambda **given: function(*given.values())
    called = get_function_name(function)
    raise RecipeError(
        Problem("R135", f"{called} cannot be called with {name!r} for {node.id!r}",
                str(node.place or f"node {node.id!r}"),
                f"a judge is called only with the value; its signature is {called}{signature}",
                f"use one parameter, {name!r}, and a default for every other parameter")
    )  # fmt: skip


def _ask_model(node: Node, ref: str, name: str, options: Mapping[str, Any], prompt: Text) -> EffectOf:
    """Ask the model; the recipe's prompt, the role and the rubric precede the value."""
    profile = node.params.get("profile")
    settings = make_settings(node.params.get("model"))
    if isinstance(profile, Mapping) and profile.get("evaluator_model"):
        settings["model"] = str(profile["evaluator_model"])
    rules = f"You are a judge, {ref!r}. {_format_rubric(profile)}\n\n{_WANTED}"

    def effect(work: Work, value: Any) -> Effect:
        first = prompt(work.board)
        system = f"{first}\n\n{rules}" if first else rules
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": f"{name}: {to_text(value)}"},
        ]
        return Effect("llm", ref, {**settings, "messages": messages}, **options)

    return effect


def _format_rubric(profile: Any) -> str:
    """Return the rubric as text: a profile's name or text, or the lines of its rubric."""
    if not isinstance(profile, Mapping):
        return f"You judge by: {safe_str(profile)}." if profile else "You judge how good a value is."
    lines = ["You judge how good a value is."]
    for line in profile.get("grading_rubric") or ():
        strict = "must" if line.get("strict", True) else "should"
        lines.append(f"- {line['name']} ({strict} come to {line['threshold']:g}): {line['description']}")
    return "\n".join(lines)


def _simulate(node: Node, ref: str, name: str, options: Mapping[str, Any]) -> EffectOf:
    """Answer with the judge's simulated answers in order, repeating the last; otherwise with a seeded score."""
    script = node.params.get("simulated")

    def effect(work: Work, value: Any) -> Effect:
        if script:
            answer = find_simulated_answer(script, work)
        else:
            number = count_earlier_calls(work, "agent", node.id)
            chance = random.Random(f"{work.run.seed}:{node.id}:{number}")  # noqa: S311  (to be repeated, not to be safe)
            answer = {"score": round(chance.random(), 2)}
        return Effect("agent", ref, {name: value}, target=lambda **_: answer, is_simulated=True, **options)

    return effect


# ------------------------------------------------------------------------------------------------ errors


def _make_nothing_error(work: Work, name: str) -> ExecutionError:
    node = work.node
    writers = [other.node.id for other in work.run.plan.nodes if name in other.node.writes and other.node is not node]
    writers_text = (
        f"the nodes that declare that they write it: {list_names(writers)}"
        if writers
        else "no node declares that it writes it"
    )
    if name in work.run.plan.recipe.inputs:
        writers_text += "; it is an input of the recipe that was not passed"
    return ExecutionError(
        Problem("X404", f"evaluator {node.id!r} has no value to evaluate: there is no {name!r} on the board",
                str(node.place or f"node {node.id!r}"), writers_text,
                f"write it in an earlier node, pass it as an input, or call session.edit({{{name!r}: ...}})")
    )  # fmt: skip


def _make_score_error(node: Node, effect: Effect, answer: Any, error: ValueError) -> ExecutionError:
    shown = safe_repr(getattr(answer, "content", answer), limit=200)
    return ExecutionError(
        Problem("X403", f"{effect.name!r} answered {shown} where evaluator {node.id!r} needs a score",
                str(node.place or f"node {node.id!r}"), str(error),
                "return a number from 0 to 1, a mapping {'score': 0.8, 'critique': '...'}, or JSON with that")
    )  # fmt: skip


KIND = Kind("evaluator", bind, step_type="REASONING")
