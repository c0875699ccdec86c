"""World: everything that a session's nodes can access. Maps each kind of effect to the callable that performs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from agentnb.board.values import freeze, thaw
from agentnb.errors import ExecutionError, Problem, RecipeError, did_you_mean, with_article
from agentnb.recipe.agent_expansion import WHOLE
from agentnb.recipe.descriptions import parse_typed
from agentnb.text import safe_repr
from agentnb.world.agents import Agent, find_agent
from agentnb.world.call_arguments import check_runs
from agentnb.world.human_input import WAIT, ask_on_terminal, parse_verdict, to_verdict
from agentnb.world.llm.base import LLMClient, LLMRequest, prepare_client, to_client
from agentnb.world.llm.env import Environment
from agentnb.world.resources import Resources

if TYPE_CHECKING:
    from agentnb.recipe.model import Node
    from agentnb.world.effect import CallingStep, Effect
    from agentnb.world.toolbox import Toolbox

Script = Sequence[Any] | Mapping[str, Any]
_NO_VARIABLES: Final = Environment()


class World:
    """The tools, model and human answers of a session, which its nodes reach through effects only.

    `tools` maps names (of a tool, a function, an agent) to callables; `answers` are scripted human answers (approvals:
    True, False or their mapping), a list in the order of requests, or a mapping from node to a list or a single value.
    `strict` says how templates and rules treat undefined values. `passed_tools` are the tools as passed by the user;
    those in `tools` are called with a recipe's config. `agents` are the models and tools of the recipe's agents, by
    node. `environment` are the environment variables that the recipe's templates may read.

    Raises:
        ExecutionError: X303, X305, the model or the answers are not valid
    """

    def __init__(
        self,
        *,
        tools: Mapping[str, Callable[..., Any]] | None = None,
        llm: Any = None,
        answers: Script | None = None,
        resources: Mapping[type, Any] | None = None,
        strict: bool = True,
        passed_tools: Mapping[str, Callable[..., Any]] | None = None,
        agents: Mapping[str, Agent] | None = None,
        environment: Environment | None = None,
    ) -> None:
        self.strict = strict
        self.environment = _NO_VARIABLES if environment is None else environment
        self.agents = dict(agents or {})
        self.tools = dict(tools or {})
        self.passed_tools = self.tools if passed_tools is None else dict(passed_tools)
        self.llm: LLMClient | None = None if llm is None else to_client(llm)
        self.answers = _parse_script(answers)
        self.resources = resources if type(resources) is Resources else Resources(resources)

    def tool(self, name: str, node: Node) -> Callable[..., Any]:
        """Return the callable with this name.

        Raises:
            RecipeError: R203, the session has none with that name; R148, it is a generator function.
        """
        function = self.tools.get(name)
        if function is None or not callable(function):
            where = str(node.place or f"node {node.id!r}")
            if name in self.tools:
                what = f"the object passed for {name!r} is {with_article(type(function).__name__)}"
                raise RecipeError(Problem("R203", what, where, "it cannot be called", "pass a function"))
            why = f"the session has: {', '.join(self.tools) or 'no tools'}"
            do = did_you_mean(name, self.tools, f"pass it: Session(recipe, tools={{{name!r}: function}})")
            raise RecipeError(Problem("R203", f"there is no function {name!r}", where, why, do))
        check_runs(node, function)
        return function

    def model_of(self, node: Node) -> LLMClient | None:
        """Return the model of a node: its agent's own, otherwise the session's.

        If the agent is the whole recipe, its model becomes the session's, unless the session has one.
        """
        own = None if WHOLE in self.agents else find_agent(self.agents, node).llm
        return self.llm if own is None else own

    def toolbox(self, node: Node) -> Toolbox:
        """Return the tools of the agent that a node is part of: its own, else those of the session.

        If the agent is the whole recipe, the session's tools override its own tools of the same name.
        """
        from agentnb.world.toolbox import Toolbox  # late, because most sessions have no such agents

        own = find_agent(self.agents, node).tools
        return Toolbox.of(own, self.passed_tools if own is None or WHOLE in self.agents else {})

    def find(self, effect: Effect, work: CallingStep) -> Callable[[Effect], Any]:
        """Return the callable that performs an effect.

        Raises:
            ExecutionError: X301, nothing in this session performs effects of that kind; X302, there is no model.
        """
        match effect.kind:
            case "human" | "approval" as kind:
                scripted = self._find_scripted(work)
                _note_call(work, kind)
                if kind == "approval":
                    return lambda question: _ask_for_verdict(question) if scripted is WAIT else to_verdict(scripted)
                return lambda question: _ask_for_input(question) if scripted is WAIT else scripted
            case "llm":
                client, requests = self.open_request(effect, work)
                return lambda _asked: client.complete(requests.next())
        raise ExecutionError(
            Problem(
                "X301",
                f"no handler for effects of kind {effect.kind!r}",
                f"node {work.node.id!r}",
                "this session handles tool, agent, llm, human and approval effects, and those that a node binds",
                "use one of them",
            )
        )

    def open_request(self, effect: Effect, work: CallingStep) -> tuple[LLMClient, Requests]:
        """Return the model of a node, and the requests to send to it for an effect: one for each attempt.

        Raises:
            ExecutionError: X302, there is no model.
        """
        client = self.model_of(work.node)
        if client is None:
            raise _make_no_model_error(work.node)
        request = self._request(effect, work)
        _note_call(work, "llm")
        return client, Requests(request, work, request.model or str(getattr(client, "model", None) or ""))

    def preparing(self, effect: Effect, work: CallingStep) -> Awaitable[None] | None:
        """Return an awaitable to run before the timeout of a model's answer starts.

        None if there is nothing to prepare.
        """
        client = self.model_of(work.node)
        return None if client is None else prepare_client(client, lambda: _make_request(effect, work))

    def _request(self, effect: Effect, work: CallingStep) -> LLMRequest:
        of_node = count_earlier_calls(work, "llm", work.node.id)
        own = WHOLE not in self.agents and find_agent(self.agents, work.node).llm is not None
        number = of_node if own else count_earlier_calls(work, "llm")  # an agent's own model is used by that agent only
        request = _make_request(effect, work, number=number, of_node=of_node)
        return request if effect.timeout is None else replace(request, timeout=effect.timeout)

    def _find_scripted(self, work: CallingStep) -> Any:
        """Return the scripted answer; WAIT if the script has none for this question."""
        answer: Any = WAIT
        script = self.answers
        if isinstance(script, Mapping):
            of_node = script.get(work.node.id, WAIT)
            if isinstance(of_node, list | tuple):
                number = _count_questions(work, work.node.id)
                answer = of_node[number] if number < len(of_node) else WAIT
            else:
                answer = of_node
        elif script is not None:
            number = _count_questions(work)
            answer = script[number] if number < len(script) else WAIT
        return answer


def _make_request(effect: Effect, work: CallingStep, number: int = 0, of_node: int = 0) -> LLMRequest:
    """Return the request that an effect describes, with a copy of its messages.

    If the messages were read one by one, the node's copies of a long conversation would have to be compared with the
    board's at the end of its step.
    """
    arguments = effect.arguments
    if "messages" in arguments:
        arguments = {**arguments, "messages": thaw(freeze(arguments["messages"]))}
    return LLMRequest.of(arguments, node=work.node.id, number=number, of_node=of_node)


def _make_no_model_error(node: Node) -> ExecutionError:
    return ExecutionError(
        Problem(
            "X302",
            f"node {node.id!r} needs a model, but the session has none",
            str(node.place or f"node {node.id!r}"),
            "no llm was passed",
            "pass one: Session(recipe, llm=...), for example a list of scripted answers",
        )
    )


class Requests:
    """The requests of one model call: pieces are accepted only for the last one, and only within its time limit."""

    def __init__(self, request: LLMRequest, work: CallingStep, model: str) -> None:
        self.request, self.work, self.model = request, work, model
        self.last = 0

    def next(self) -> LLMRequest:
        """Return the request of the next attempt; if the run's tokens have a listener, they are passed to it."""
        request, work, on_token = self.request, self.work, self.work.run.on_token
        if on_token is None:
            return request
        self.last += 1
        attempt, end = self.last, None if request.timeout is None else monotonic() + request.timeout

        def tell(text: str) -> None:
            if attempt == self.last and not work.has_ended and (end is None or monotonic() < end):
                on_token(work.node.id, text, attempt, request.of_node, self.model)

        return replace(request, on_token=tell)


def _parse_script(answers: Any) -> Script | None:
    """Return scripted answers as they are.

    Raises:
        ExecutionError: X305, they are neither a list nor a mapping.
    """
    if answers is None or (isinstance(answers, Sequence | Mapping) and not isinstance(answers, str | bytes)):
        return answers
    order = (
        f"write a list: [{safe_repr(answers)}]"
        if isinstance(answers, str)
        else "pass a list, or a mapping from node to list"
    )
    raise ExecutionError(
        Problem("X305", f"{with_article(type(answers).__name__)} is not a script of answers", "answers=...",
                "a script is a list in the order of the questions, or a mapping from node to a list or a value", order)
    )  # fmt: skip


def _ask_for_input(effect: Effect) -> Any:
    """Return the input typed on a terminal, or WAIT for a person; the prompt names the node and the question.

    If the input is invalid or does not fit the question, the question is repeated.
    """
    prompt, role = str(effect.arguments.get("prompt", "")), effect.arguments.get("role")
    prompt = f"{prompt} (for role {role})" if role else prompt
    if options := effect.arguments.get("options"):
        prompt = f"{prompt} [{', '.join(map(str, options))}]"
    while True:
        line = ask_on_terminal(prompt, effect.timeout)
        schema = effect.arguments.get("schema")
        answer = line if line is WAIT or schema is None else parse_typed(line, schema)
        try:
            if line is not WAIT and effect.check is not None:
                effect.check(answer)
        except ExecutionError as refused:
            prompt = f"{refused}\n{prompt}"
            continue
        return answer


def _ask_for_verdict(effect: Effect) -> Any:
    """Return the verdict typed on a terminal, or WAIT; anything but yes or no is requested again."""
    question = str(effect.arguments.get("prompt") or f"{effect.name} {safe_repr(dict(effect.arguments), limit=200)}")
    while True:
        line = ask_on_terminal(f"{question}\nApprove? (yes, or no and why)", effect.timeout)
        if line is WAIT or (verdict := parse_verdict(str(line))) is not None:
            return line if line is WAIT else verdict


def _count_questions(work: CallingStep, node: str | None = None) -> int:
    """Count the earlier requests to people, answers and approvals alike: one script serves both."""
    return count_earlier_calls(work, "human", node) + count_earlier_calls(work, "approval", node)


def count_earlier_calls(work: CallingStep, kind: str, node: str | None = None) -> int:
    """Count the calls of a kind that the run has made before this one, so that a script continues at its position.

    Attempts of one call count once. Calls of steps in flight count as well, so that no two branches use the same
    position.
    """
    # A call that is retried in another process already has its own rows
    own = _count_calls(work, kind, work.call_count - 1)
    count = work.run.count_calls(kind, node) + own
    for pending_step in tuple(work.run.pending_steps.values()):  # a copy, because a call in a thread may read it
        other = pending_step.activation.work
        if other is not work and (node is None or other.node.id == node):
            count += _count_calls(other, kind)
    return count


def _note_call(work: CallingStep, kind: str) -> None:
    """Record that a step has started a call: it counts before its answer has arrived."""
    work.asked_kinds.append(kind)
    work.busy = True


def _count_calls(work: CallingStep, kind: str, but: int | None = None) -> int:
    """Count the calls of a kind that a step has started, each once, except for one of them."""
    rows = len({call.call for call in work.calls if call.kind == kind and call.call != but}) if work.calls else 0
    return max(rows, work.asked_kinds.count(kind))
