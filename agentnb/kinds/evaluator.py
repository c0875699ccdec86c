"""evaluator: has a value judged, and goes on by its score: passed, or round again with the critique, so often at most.

R135: a judge could never be called with the value alone.
X403: a judge answered what is no score, or one that is not from 0 to 1 as the threshold is.
X404: there is nothing to judge.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentnb.board.secrets import short
from agentnb.board.values import ABSENT
from agentnb.engine.work import Effect, Kind, Outcome, Perform, Work
from agentnb.errors import ExecutionError, Problem, RecipeError
from agentnb.expressions.paths import path_text
from agentnb.kinds.agent import is_simulated
from agentnb.recipe.model import Node
from agentnb.recipe.words import listed
from agentnb.world.calls import asked_of, options_of, settings_of
from agentnb.world.llm.verdict import verdict_in
from agentnb.world.llm.wording import in_words
from agentnb.world.world import asked_before

_WANTED: Final = (
    'Answer with JSON alone: {"score": a number from 0 (worst) to 1 (best), "critique": what to do better, as a text}'
)
EffectOf = Callable[[Work, Any], Effect]


@dataclass(frozen=True, slots=True)
class Rules:
    """What an evaluator goes by: the score that passes, how often it may send back, and where it leads.

    An empty route ends the run, or the parallel branch that it stands in: then `meets` is the node that comes after
    that. `feedback` is the board key for the critique, `name` the judged value's.
    """

    name: str
    threshold: float
    refinements: int
    passed: str
    failed: str
    feedback: str
    simulated: bool
    meets: str = ""

    @classmethod
    def of(cls, node: Node, name: str, simulated: bool) -> Rules:
        """Return the rules that a node's `params` state."""
        params = node.params
        return cls(
            name,
            params.get("threshold", 0.5),
            params.get("max_refinements", 1),
            params.get("pass_route", ""),
            params.get("fail_route", ""),
            params.get("feedback", "feedback"),
            simulated,
            params.get("meets", ""),
        )


def bind(node: Node, world: Any) -> Perform:
    """Return the function that has the value at `params["target"]` judged and chooses its way.

    The judge is the tool named by `params["ref"]`, else the session's model, else a made-up score. A score of
    `threshold` or more leads to `pass_route`. Any other writes the critique to `feedback` and leads to `fail_route`;
    when `max_refinements` have been asked for since it last passed, the run ends there.

    Raises:
        RecipeError: R135, the judge could never be called with the value.
    """
    target = node.params["target"]
    path = (target,) if isinstance(target, str) else tuple(target)
    rules = Rules.of(node, path_text(path), is_simulated(node, world))
    judge = _judge(node, world, str(path[-1]), rules.simulated)

    async def perform(work: Work) -> Outcome:
        work.reads[path[0]] = None
        value = work.arg(path)
        if value is ABSENT:
            raise _nothing(work, rules.name)
        seen = work.scope.look(path)  # as the board keeps it: a judge may change its own copy
        effect = judge(work, value)
        answer = await work.call(effect)
        try:
            score, critique = verdict(answer, rules.threshold)
        except ValueError as error:
            raise _no_score(node, effect, answer, error) from None
        return _outcome(rules, score, critique, _asked(work, rules), seen)

    return perform


def verdict(answer: Any, threshold: float | None = None) -> tuple[float, Any]:
    """Return the score in what a judge answered, and its critique; None where it gave none.

    One that says no more than whether it passes has the score 1 or 0.

    Raises:
        ValueError: there is no score in it, or one that is not finite; or one beyond 0 to 1 where the threshold is not.
    """
    found = verdict_in(answer)
    score = float(bool(found.passed)) if found.score is None else found.score
    if threshold is not None and 0 <= threshold <= 1 and not 0 <= score <= 1:
        raise ValueError(f"the score is {score:g}, and the threshold {threshold:g} is one for scores from 0 to 1")
    return score, found.remark


def _asked(work: Work, rules: Rules) -> int:
    """Return the refinements asked for since the node last passed: as its last step says, so that forks agree."""
    note = work.run.last_note(work.node.id, ("agent", "llm"))
    said = note and note.observation
    return 0 if not isinstance(said, Mapping) or said["passed"] else min(said["refinement"], max(rules.refinements, 0))


def _outcome(rules: Rules, score: float, critique: Any, asked: int, seen: Any) -> Outcome:
    passed = score >= rules.threshold
    again = not passed and asked < rules.refinements
    asked += again
    target = rules.passed if passed else rules.failed if again else ""
    said, limit = _told(score, rules.threshold)
    below = f"Score {said} is below {limit}"
    end, forced = "go to the end", "forced end"
    if rules.meets:
        end, forced = f"go to {rules.meets!r}, where the branches meet", "forced end of the branch"
    where = f"go to {target!r}" if target else end
    if passed:
        thought = f"Score {said} has reached {limit}: passed, {where}"
    elif again:
        thought = f"{below}: refinement {asked} of {rules.refinements}, {where}"
    elif rules.refinements > 0:
        thought = f"{below}, and all {rules.refinements} refinements are used: {forced}"
    else:
        thought = f"{below}, and no refinement may be asked for: {forced}"
    critique = critique if critique is not None or passed else f"{below}."
    observation = {
        "score": score,
        "passed": passed,
        "threshold": rules.threshold,
        "critique": critique,
        "refinement": asked,
        "decision": target or rules.meets or None,
        "forced": not passed and not again,
        "simulated": rules.simulated,
    }
    return Outcome(
        {} if passed else {rules.feedback: critique},
        route=(target,) if target else (),
        value=score,
        thought=f"{thought} (simulated)" if rules.simulated else thought,
        observation=observation,
        inputs={rules.name: seen},
        score=score,
    )


def _told(score: float, threshold: float) -> tuple[str, str]:
    """Return a score and the threshold with two decimals; where those would not tell them apart, in full."""
    told = f"{score:.2f}", f"{threshold:.2f}"
    return told if told[0] != told[1] or score == threshold else (repr(score), repr(threshold))


# ------------------------------------------------------------------------------------------------ who judges


def _judge(node: Node, world: Any, name: str, simulated: bool) -> EffectOf:
    """Return what makes the effect that asks for a value's score."""
    ref, options = str(node.params.get("ref", node.id)), options_of(node)
    if simulated:
        return _made_up(node, ref, name, options)
    if world.tools.get(ref) is None:
        return _asking(node, ref, name, asked_of(world, options))
    call = _called_with(node, world.tool(ref, node), name)
    return lambda _work, value: Effect("agent", ref, {name: value}, target=call, **options)


def _called_with(node: Node, function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a judge so that it takes the value under its name: as it is where it does, else as the one argument.

    Raises:
        RecipeError: R135, it takes neither, or needs more.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin that does not tell
        return lambda **given: function(*given.values())
    for positional, named in (((), {name: None}), ((None,), {})):
        try:
            signature.bind(*positional, **named)
        except TypeError:
            continue
        return function if named else lambda **given: function(*given.values())
    called = getattr(function, "__qualname__", repr(function))
    raise RecipeError(
        Problem("R135", f"{called} cannot judge {name!r} for {node.id!r}", str(node.place or f"node {node.id!r}"),
                f"a judge is called with the value alone, and its signature is {called}{signature}",
                f"give it one parameter, {name!r}, and a default to each other one")
    )  # fmt: skip


def _asking(node: Node, ref: str, name: str, options: Mapping[str, Any]) -> EffectOf:
    """Ask the model; what the recipe says first, who it is and by what it judges stand before the value."""
    profile = node.params.get("profile")
    settings = settings_of(node.params.get("model"))
    if isinstance(profile, Mapping) and profile.get("evaluator_model"):
        settings["model"] = str(profile["evaluator_model"])
    first = node.params.get("prompt")
    system = "\n\n".join([*([str(first)] if first else []), f"You are a judge, {ref!r}. {_rubric(profile)}", _WANTED])

    def effect(_work: Work, value: Any) -> Effect:
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": f"{name}: {in_words(value)}"},
        ]
        return Effect("llm", ref, {**settings, "messages": messages}, **options)

    return effect


def _rubric(profile: Any) -> str:
    """Return by what is judged, in words: a profile's name or text, or the lines of its rubric."""
    if not isinstance(profile, Mapping):
        return f"You judge by: {profile}." if profile else "You judge how good a value is."
    lines = ["You judge how good a value is."]
    for line in profile.get("grading_rubric") or ():
        strict = "must" if line.get("strict", True) else "should"
        lines.append(f"- {line['name']} ({strict} come to {line['threshold']:g}): {line['description']}")
    return "\n".join(lines)


def _made_up(node: Node, ref: str, name: str, options: Mapping[str, Any]) -> EffectOf:
    """Answer what the recipe says that its judge answers, in turn and then the last again; else a seeded score."""
    script = node.params.get("simulated")

    def effect(work: Work, value: Any) -> Effect:
        number = asked_before(work, "agent", node.id)
        if script:
            answer = dict(script[min(number, len(script) - 1)])
        else:
            chance = random.Random(f"{work.run.seed}:{node.id}:{number}")  # noqa: S311  (to be repeated, not to be safe)
            answer = {"score": round(chance.random(), 2)}
        return Effect("agent", ref, {name: value}, target=lambda **_: answer, made_up=True, **options)

    return effect


# ------------------------------------------------------------------------------------------------ what goes wrong


def _nothing(work: Work, name: str) -> ExecutionError:
    node = work.node
    writers = [other.node.id for other in work.run.plan.nodes if name in other.node.writes and other.node is not node]
    who = f"the nodes that declare to write it: {listed(writers)}" if writers else "no node declares to write it"
    if name in work.run.plan.recipe.inputs:
        who += "; it is an input of the recipe, and was not given"
    return ExecutionError(
        Problem("X404", f"evaluator {node.id!r} has nothing to judge: there is no {name!r} on the board",
                str(node.place or f"node {node.id!r}"), who,
                f"have it written before, give it among the inputs, or session.edit({{{name!r}: ...}})")
    )  # fmt: skip


def _no_score(node: Node, effect: Effect, answer: Any, error: ValueError) -> ExecutionError:
    said = short(getattr(answer, "content", answer), width=200)
    return ExecutionError(
        Problem("X403", f"{effect.name!r} answered {said} where evaluator {node.id!r} needs a score",
                str(node.place or f"node {node.id!r}"), str(error),
                "answer a number from 0 to 1, a mapping {'score': 0.8, 'critique': '...'}, or JSON with that")
    )  # fmt: skip


KIND = Kind("evaluator", bind, step_type="REASONING", shape="hexagon")
