"""Translate one node of a coreason recipe, with its policy, to a node of its kind. Translation only.

Retries are the node's own (`recovery.max_retries`, with its delay between two attempts) if set, otherwise those of the
policy, which has no delay. The policy's timeout applies to nodes that use an agent or a model; a human node has its own
timeout, and is never retried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from agentnb.dialects.coreason.parts.field_schemas import make_output_schema
from agentnb.errors import Place
from agentnb.recipe.descriptions import OTHERWISE
from agentnb.recipe.model import Node, Rescue, RouteTarget, freeze_mapping

if TYPE_CHECKING:
    from agentnb.dialects.coreason.parts.profiles import ModelChoice
    from agentnb.dialects.coreason.parts.sections_schema import PolicyConfig
    from agentnb.dialects.coreason.schema import AgentNode, EvaluatorNode, GenerativeNode, HumanNode, RecipeNode

# Nodes that use an agent or a model.
_ASKING: Final = frozenset({"agent", "evaluator", "generative"})
LONGEST_WAIT: Final = 10**9  # seconds, some 30 years; a longer wait counts as no wait


def make_node(
    node: RecipeNode,
    place: Place,
    policy: PolicyConfig | None,
    model: ModelChoice | Mapping[str, Any] | str | None,
) -> Node:
    """Return a node of its kind.

    `policy` is the recipe's; `model` its default model policy, a model's name or settings of its requests, which a
    node's own overrides.
    """
    rescue = _make_rescue(node)
    own = getattr(node, "model_policy", None)
    params = _make_params(node, policy, _make_model_settings(model if own is None else own)) | _make_options(
        node, policy
    )
    inputs = {argument: (key,) for argument, key in node.inputs_map.items()} if node.type == "agent" else None
    return Node(
        id=node.id,
        kind=node.type,
        label=(node.presentation and node.presentation.label) or "",
        inputs=None if inputs is None else freeze_mapping(inputs),
        reads=_reads(node),
        writes=tuple(dict.fromkeys([*_writes(node, params), *(rescue.writes if rescue else ())])),
        params=freeze_mapping({key: value for key, value in params.items() if value is not None}),
        rescue=rescue,
        place=place,
    )


def _make_params(node: RecipeNode, policy: PolicyConfig | None, model: Any) -> dict[str, Any]:
    """Return the fields of a node's type; None leaves the choice to its kind."""
    preamble = policy.safety_preamble if policy else None
    match node.type:
        case "agent":
            return _make_agent(node, preamble, model)
        case "human":
            return _make_human(node)
        case "router":
            return {
                "input_key": (node.input_key,),
                "routes": freeze_mapping(node.routes),
                "default": node.default_route,
            }
        case "evaluator":
            return _make_evaluator(node, preamble, model)
        case "generative":
            return _make_generative(node, preamble, model)


def _make_agent(node: AgentNode, preamble: str | None, model: Any) -> dict[str, Any]:
    """Return the agent of a node: a name to bind, its system prompt, and the key for answers other than mappings."""
    named = isinstance(node.agent_ref, str)
    return {
        "ref": node.agent_ref if named else node.id,
        "output": "output",
        "prompt": _join([preamble, node.system_prompt_override or _describe_agent(node)]),
        "wanted": None if named else _to_plain_part(node.agent_ref),
        "model": model,
        "simulated": _make_simulated_answers(node),
    }


def _describe_agent(node: AgentNode) -> str | None:
    """Return a description of an agent that is defined inline or by its goal."""
    if (profile := node.cognitive_profile) is not None:
        task = f" Your task: {profile.task_primitive}." if profile.task_primitive else ""
        return f"Your role: {profile.role}.{task}"
    if node.agent_ref is None or isinstance(node.agent_ref, str):
        return None
    reference = node.agent_ref
    bounds = [f"- {rule}" for rule in reference.constraints]
    return "\n".join([reference.intent, *(["Conditions:", *bounds] if bounds else [])])


def _make_human(node: HumanNode) -> dict[str, Any]:
    return {
        "prompt": node.prompt,
        "output": "response",
        "timeout": _drop_non_positive(node.timeout_seconds),
        "role": node.required_role,
    }


def _make_evaluator(node: EvaluatorNode, preamble: str | None, model: Any) -> dict[str, Any]:
    return {
        "target": (node.target_variable,),
        "ref": node.evaluator_agent_ref,
        "profile": _to_plain_part(node.evaluation_profile),
        "threshold": node.pass_threshold,
        "max_refinements": node.max_refinements,
        "pass_route": node.pass_route,
        "fail_route": node.fail_route,
        "feedback": node.feedback_variable,
        "prompt": preamble,
        "model": model,
        "simulated": _make_simulated_answers(node),
    }


def _make_generative(node: GenerativeNode, preamble: str | None, model: Any) -> dict[str, Any]:
    return {
        "goal": node.goal,
        "schema": freeze_mapping(make_output_schema(node.output_schema)),
        "tools": tuple(node.allowed_tools),
        "solver": _to_plain_part(node.solver),
        "prompt": preamble,
        "model": model,
        "simulated": _make_simulated_answers(node),
    }


def _make_simulated_answers(node: RecipeNode) -> tuple[Mapping[str, Any], ...] | None:
    """Return the simulated answers of a node's agent from its metadata: one mapping, or several used in turn."""
    simulated = node.metadata.get("simulated")
    answers = simulated if isinstance(simulated, list) else [simulated]
    mappings = tuple(answer for answer in answers if isinstance(answer, Mapping))
    return mappings if mappings and len(mappings) == len(answers) else None


def _make_options(node: RecipeNode, policy: PolicyConfig | None) -> dict[str, Any]:
    """Return how a node's calls are made: the timeout, the attempts, the delay between two, and `repeatable`."""
    if node.type not in _ASKING:
        return {}
    retries, delay = policy.max_retries if policy else 0, 0.0
    if node.recovery is not None and node.recovery.max_retries is not None:
        retries, delay = node.recovery.max_retries, _drop_non_positive(node.recovery.retry_delay_seconds) or 0.0
    retry_options: dict[str, Any] = {"attempts": 1 + retries, "backoff": delay} if retries > 0 else {}
    # Its call may be repeated after an interrupted run
    if isinstance(repeatable := node.metadata.get("repeatable"), bool):
        retry_options["repeatable"] = repeatable
    return {"timeout": _drop_non_positive(policy.timeout_seconds if policy else None), **retry_options}


def _make_rescue(node: RecipeNode) -> Rescue | None:
    """Return how the run continues after a failure of the node; a fallback is an edge, not a recovery."""
    recovery = node.recovery
    if recovery is None or recovery.behavior not in ("continue_with_default", "ignore"):
        return None
    default = recovery.default_output if recovery.behavior == "continue_with_default" else None
    route: tuple[RouteTarget, ...] | None = None
    if node.type in ("router", "evaluator"):  # their edges are never evaluated
        target, condition = (node.default_route, OTHERWISE) if node.type == "router" else (node.pass_route, "pass")
        route = (RouteTarget(target, condition),) if target else ()
    return Rescue(freeze_mapping(default or {}), route)


def _reads(node: RecipeNode) -> tuple[str, ...]:
    match node.type:
        case "agent":
            return tuple(dict.fromkeys(node.inputs_map.values()))
        case "router":
            return (node.input_key,)
        case "evaluator":
            return (node.target_variable,)
    return ()


def _writes(node: RecipeNode, params: Mapping[str, Any]) -> tuple[str, ...]:
    match node.type:
        case "agent":
            return tuple(key for answer in params["simulated"] or ({"output": None},) for key in answer)
        case "human":
            return ("response",)
        case "evaluator":
            return (node.feedback_variable,)
        case "generative":
            schema = params["schema"]
            if isinstance(properties := schema.get("properties"), Mapping):
                return tuple(map(str, properties))
            return (node.id,) if schema.get("type", "object") != "object" else ()
    return ()


def _make_model_settings(model: Any) -> Any:
    """Return a model's name, or the settings of a model policy that differ from the defaults.

    None if there are none.
    """
    settings = model.model_dump(exclude_defaults=True) if hasattr(model, "model_dump") else model
    return settings or None


def _drop_non_positive(seconds: float | None) -> float | None:
    return seconds if seconds is not None and 0 < seconds <= LONGEST_WAIT else None


def _join(parts: Iterable[str | None]) -> str | None:
    return "\n\n".join(part for part in parts if part) or None


def _to_plain_part(value: Any) -> Any:
    return value.model_dump() if hasattr(value, "model_dump") else value
