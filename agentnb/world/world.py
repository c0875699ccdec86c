"""world: what one session may reach. Effects are looked up here by kind: each is done by a callable of the effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from agentnb.board.secrets import short
from agentnb.errors import ExecutionError, Problem, RecipeError, did_you_mean
from agentnb.recipe.grafts import WHOLE
from agentnb.world.agents import Agent, agent_of
from agentnb.world.llm.base import LLMClient, LLMRequest, as_client
from agentnb.world.people import WAIT, ask_on_terminal, typed_verdict, verdict_of
from agentnb.world.resources import Resources

if TYPE_CHECKING:
    from agentnb.engine.work import Effect, Work
    from agentnb.recipe.model import Node
    from agentnb.world.toolbox import Toolbox

Script = Sequence[Any] | Mapping[str, Any]


class World:
    """Tools, a model, people: given to a session, asked by its nodes through the one door.

    `tools` maps names (of a tool, a function, an agent) to callables; `answers` are scripted human answers (approvals:
    True, False or their mapping), a list in the order of asking, or a mapping from node to a list or a single value.
    `strict` says how templates and rules take what is missing. `given` are the tools as somebody gave them, where
    `tools` are called with a recipe's config. `agents` are what the recipe's agents bring along, by the node that each
    of them is.

    Raises: ExecutionError: X303, X305, what is given as the model or as answers can be neither
    """

    def __init__(
        self,
        *,
        tools: Mapping[str, Callable[..., Any]] | None = None,
        llm: Any = None,
        answers: Script | None = None,
        resources: Mapping[type, Any] | None = None,
        strict: bool = True,
        given: Mapping[str, Callable[..., Any]] | None = None,
        agents: Mapping[str, Agent] | None = None,
    ) -> None:
        self.strict = strict
        self.agents = dict(agents or {})
        self.tools = dict(tools or {})
        self.given = self.tools if given is None else dict(given)
        self.llm: LLMClient | None = None if llm is None else as_client(llm)
        self.answers = _script(answers)
        self.resources = resources if isinstance(resources, Resources) else Resources(resources)

    def tool(self, name: str, node: Node) -> Callable[..., Any]:
        """Return the callable with this name.

        Raises:
            RecipeError: R203, the session was given none of that name.
        """
        found = self.tools.get(name)
        if found is None or not callable(found):
            order = f"pass it: Session(recipe, tools={{{name!r}: function}})"
            raise RecipeError(
                Problem(
                    "R203",
                    f"there is no function {name!r}" if found is None else f"{name!r} is not callable",
                    str(node.place or f"node {node.id!r}"),
                    f"the session was given: {', '.join(self.tools) or 'no tools'}",
                    did_you_mean(name, self.tools, order) if found is None else order,
                )
            )
        return found

    def model_of(self, node: Node) -> LLMClient | None:
        """Return the model that a node asks: its agent's own, else the session's.

        Where the agent is the whole recipe, its own has become the session's, if that was given none.
        """
        own = None if WHOLE in self.agents else agent_of(self.agents, node).llm
        return self.llm if own is None else own

    def toolbox(self, node: Node) -> Toolbox:
        """Return the tools of the agent that a node is part of: its own, else those that the session was given.

        Where the agent is the whole recipe, what the session was given comes before its own tools of the same name.
        """
        from agentnb.world.toolbox import Toolbox  # late: most sessions have no agents of this sort

        own = agent_of(self.agents, node).tools
        return Toolbox.of(own, self.given if own is None or WHOLE in self.agents else {})

    def find(self, effect: Effect, work: Work) -> Callable[[Effect], Any]:
        """Return the callable that does an effect.

        Raises:
            ExecutionError: X301, nothing here does effects of that kind.
        """
        match effect.kind:
            case "human" | "approval" as kind:
                found = self._scripted(work)
                _begun(work, kind)
                if kind == "approval":
                    return lambda asked: _decided(asked) if found is WAIT else verdict_of(found)
                return lambda asked: _typed(asked) if found is WAIT else found
            case "llm":
                request, attempts = self._request(effect, work), _Attempts()
                _begun(work, "llm")
                model = request.model or str(getattr(self.model_of(work.node), "model", None) or "")
                return lambda _asked: self._complete(attempts.telling(request, work, model), work)
        raise ExecutionError(
            Problem(
                "X301",
                f"nothing does {effect.kind!r} effects",
                f"node {work.node.id!r}",
                "this session knows tool, agent, llm, human and approval, and what a node binds itself",
                "use one of them",
            )
        )

    def _request(self, effect: Effect, work: Work) -> LLMRequest:
        of_node = asked_before(work, "llm", work.node.id)
        own = WHOLE not in self.agents and agent_of(self.agents, work.node).llm is not None
        number = of_node if own else asked_before(work, "llm")  # an agent's own model is asked by nobody else
        request = LLMRequest.of(effect.arguments, node=work.node.id, number=number, of_node=of_node)
        return request if effect.timeout is None else replace(request, timeout=effect.timeout)

    def _complete(self, request: LLMRequest, work: Work) -> Any:
        client = self.model_of(work.node)
        if client is None:
            raise ExecutionError(
                Problem(
                    "X302",
                    f"node {work.node.id!r} asks a model, and the session has none",
                    str(work.node.place or f"node {work.node.id!r}"),
                    "no llm was given",
                    "give one: Session(recipe, llm=...), for example a list of scripted answers",
                )
            )
        return client.complete(request)

    def _scripted(self, work: Work) -> Any:
        """Return the scripted answer; WAIT where the script has none for this question."""
        found: Any = WAIT
        script = self.answers
        if isinstance(script, Mapping):
            of_node = script.get(work.node.id, WAIT)
            if isinstance(of_node, list | tuple):
                number = _questions(work, work.node.id)
                found = of_node[number] if number < len(of_node) else WAIT
            else:
                found = of_node
        elif script is not None:
            number = _questions(work)
            found = script[number] if number < len(script) else WAIT
        return found


class _Attempts:
    """The attempts of one call of a model: only the one that goes on now is heard, and only while it may take time."""

    def __init__(self) -> None:
        self.last = 0

    def telling(self, request: LLMRequest, work: Work, model: str) -> LLMRequest:
        """Return the request of the next attempt; where somebody listens to the run's tokens, it is told them."""
        heard = work.run.tell
        if heard is None:
            return request
        self.last += 1
        attempt, end = self.last, None if request.timeout is None else monotonic() + request.timeout

        def tell(text: str) -> None:
            if attempt == self.last and not work.dead and (end is None or monotonic() < end):
                heard(work.node.id, text, attempt, request.of_node, model)

        return replace(request, tell=tell)


def _script(answers: Any) -> Script | None:
    """Return scripted answers as they are.

    Raises:
        ExecutionError: X305, they are neither a list nor a mapping.
    """
    if answers is None or (isinstance(answers, Sequence | Mapping) and not isinstance(answers, str | bytes)):
        return answers
    order = f"write a list: [{answers!r}]" if isinstance(answers, str) else "give a list, or a mapping from node to it"
    raise ExecutionError(
        Problem("X305", f"a {type(answers).__name__} is no script of answers", "Session(answers=...)",
                "a script is a list in the order of asking, or a mapping from node to a list or one value", order)
    )  # fmt: skip


def _typed(effect: Effect) -> Any:
    """Return what is typed on a terminal, else WAIT, for a person to come; the line says who is asked."""
    prompt, role = str(effect.arguments.get("prompt", "")), effect.arguments.get("role")
    return ask_on_terminal(f"{prompt} (for role {role})" if role else prompt, effect.timeout)


def _decided(effect: Effect) -> Any:
    """Return the verdict that is typed on a terminal, else WAIT; what is neither yes nor no is asked once more."""
    about = str(effect.arguments.get("prompt") or f"{effect.name} {short(dict(effect.arguments), width=200)}")
    while True:
        line = ask_on_terminal(f"{about}\nApprove? (yes, or no and why)", effect.timeout)
        if line is WAIT or (verdict := typed_verdict(str(line))) is not None:
            return line if line is WAIT else verdict


def _questions(work: Work, node: str | None = None) -> int:
    """Count what people were asked before, answers and approvals alike: one script serves both."""
    return asked_before(work, "human", node) + asked_before(work, "approval", node)


def asked_before(work: Work, kind: str, node: str | None = None) -> int:
    """Count the calls of a kind that the run has made before this one, so that a script goes on where it stands.

    Attempts of one call count once. Those of steps in flight count too: no two branches find the same place.
    """
    own = _made(work, kind, work.called - 1)  # one that is tried again in another process has rows of its own already
    made = work.run.calls_before(kind, node) + own
    for flight in tuple(work.run.flights.values()):  # a copy: a call in a thread may ask
        other = flight.act.work
        if other is not work and (node is None or other.node.id == node):
            made += _made(other, kind)
    return made


def _begun(work: Work, kind: str) -> None:
    """Note that a step has begun a call: it counts before its answer has come."""
    work.asked.append(kind)
    work.busy = True


def _made(work: Work, kind: str, but: int | None = None) -> int:
    """Count the calls of a kind that a step has begun, each once, but for one of them."""
    rows = len({call.call for call in work.calls if call.kind == kind and call.call != but}) if work.calls else 0
    return max(rows, work.asked.count(kind))
