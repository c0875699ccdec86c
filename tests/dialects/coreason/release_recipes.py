"""Whole recipes in the style of each release of coreason-manifest, for the tests of what loads."""

from __future__ import annotations

from copy import deepcopy

from tests.dialects.coreason.recipe_texts import agent, content, router

EVALUATOR = {
    "id": "judge",
    "type": "evaluator",
    "target_variable": "output",
    "evaluator_agent_ref": "judge-agent",
    "evaluation_profile": {
        "expected_latency_ms": 5,
        "golden_dataset_uri": "file://cases",
        "evaluator_model": "small",
        "grading_rubric": [{"name": "kind", "description": "is it?", "threshold": 0.5, "strict": True}],
    },
    "pass_threshold": 0.5,
    "max_refinements": 2,
    "pass_route": "end",
    "fail_route": "write",
    "feedback_variable": "critique",
}
LOOKS = {"x": 1.0, "y": 2.0, "label": "Writer", "color": "#aabbcc", "icon": "pen", "z_index": 1, "shadow": True}
ASK = {"id": "ask", "type": "human", "prompt": "Well?", "timeout_seconds": 3, "required_role": "lead"}
AROUND = {
    "interface": {"inputs": {"topic": {"type": "string"}}, "outputs": {"output": {}}},
    "state": {"properties": {"tries": {"type": "integer"}}, "persistence": "ephemeral"},
    "policy": {"max_retries": 1, "timeout_seconds": 2, "execution_mode": "sequential"},
}
REQUIREMENT = {"variable": "a.b", "operator": "eq", "value": 1, "required": False, "error_message": "No."}


def release_20():
    """Return a file that only 0.20 takes: agents, people and routers, and any metadata."""
    nodes = [agent("write", inputs_map={"q": "topic"}, presentation=LOOKS), ASK, router("end", {"v": ""}, "")]
    metadata = {"name": "t", "x-design": {"x": 1, "y": 2}, "provenance": "by hand", "created": 2024}
    return content(nodes, [("write", "ask"), ("ask", "end")], **AROUND, metadata=metadata)


def release_21(short=False):
    """Return a file that only 0.21 takes: requirements, an evaluator, its metadata; a topology that may be short."""
    nodes = [agent("write", inputs_map={"q": "topic"}, presentation=LOOKS), EVALUATOR, ASK, router("end", {}, "")]
    metadata = {
        "name": "t",
        "generation_rationale": "why",
        "original_user_intent": "what",
        "generated_by": "a model",
        "confidence_score": 0.5,
        "x-design": {"x": 1, "y": 2, "icon": "i", "color": "red", "label": "l", "zoom": 1.5, "collapsed": True},
        "tested_models": ["m"],
        "version": 2,
    }
    recipe = content(
        nodes, [("write", "judge"), ("ask", "end")], **AROUND, metadata=metadata, requirements=[REQUIREMENT]
    )
    return {**recipe, "topology": {"steps": nodes}} if short else recipe


ON_A_NODE = {
    "interaction": {
        "transparency": "interactive",
        "triggers": ["on_start", "on_plan_generation", "on_failure", "on_completion"],
        "editable_fields": ["a"],
        "enforce_contract": True,
        "guidance_hint": "h",
    },
    "visualization": {
        "style": "chat",
        "display_title": "t",
        "icon": "i",
        "hidden_fields": ["a"],
        "progress_indicator": "p",
    },
    "collaboration": {
        "mode": "co_edit",
        "feedback_schema": {"a": 1},
        "supported_commands": ["/x"],
        "channels": ["c"],
        "timeout_seconds": 4,
        "fallback_behavior": "escalate",
    },
    "recovery": {
        "max_retries": 2,
        "retry_delay_seconds": 0.5,
        "behavior": "route_to_fallback",
        "fallback_node_id": "ask",
        "default_output": {"a": 1},
    },
    "reasoning": {
        "strategy": "adversarial",
        "adversarial": {"persona": "skeptic", "attack_vectors": ["x"], "temperature": 0.7},
        "gap_scan": {"enabled": True, "confidence_threshold": 0.8},
        "max_revisions": 2,
    },
    "model_policy": "fast",
}
WISH = {
    "intent": "write well",
    "constraints": ["in prose"],
    "candidates": [{"ref": "r", "score": 0.5, "rationale": "why", "warnings": ["w"]}],
    "optimization": {
        "base_ref": "b",
        "improvement_goal": "g",
        "strategy": "atomic",
        "metric_name": "m",
        "teacher_model": "t",
        "max_demonstrations": 3,
    },
}
MIND = {
    "role": "writer",
    "reasoning_mode": "standard",
    "reasoning": {"strategy": "basic"},
    "reflex": {"enabled": True, "confidence_threshold": 0.9, "allowed_tools": ["t"]},
    "knowledge_contexts": [{"name": "n", "priority": 8, "parameters": {"a": 1}}],
    "memory_read": [{"collection_name": "c", "strategy": "dense", "top_k": 3, "score_threshold": 0.5, "scope": "user"}],
    "memory_write": {"strategy": "summary_window", "frequency_turns": 3, "destination_collection": "c"},
    "task_primitive": "summarize",
}
INVENT = {
    "id": "invent",
    "type": "generative",
    "goal": "a poem",
    "output_schema": {"type": "object", "properties": {"poem": {"type": "string"}}},
    "allowed_tools": ["t"],
    "solver": {
        "strategy": "tree_search",
        "depth_limit": 3,
        "n_samples": 2,
        "diversity_threshold": 0.3,
        "enable_dissenter": True,
        "consensus_threshold": 0.6,
        "beam_width": 2,
        "max_iterations": 3,
        "aggregation_method": "best_of_n",
    },
}
MODEL = {
    "strategy": "lowest_cost",
    "min_context_window": 8000,
    "max_input_cost_per_m": 1.5,
    "compliance": ["hipaa"],
    "provider_whitelist": ["p"],
    "allow_fallback": False,
}
LATER = {
    "metadata": {
        "name": "t",
        "version": "1",
        "description": "d",
        "created": "2024-01-01T00:00:00Z",
        "requires_auth": True,
        "provenance": {
            "type": "hybrid",
            "generated_by": "m",
            "generated_date": "2024-01-01T00:00:00Z",
            "rationale": "r",
            "original_intent": "o",
            "confidence_score": 0.5,
            "methodology": "m",
            "derived_from": "d",
            "modifications": ["x"],
        },
    },
    "policy": {
        **AROUND["policy"],
        "priority": 8,
        "rate_limit_rpm": 1,
        "rate_limit_tpm": 1,
        "caching_enabled": False,
        "budget_cap_usd": 1.5,
        "token_budget": 3000,
        "sensitive_tools": ["t"],
        "allowed_mcp_servers": ["m"],
        "safety_preamble": "Be kind.",
        "legal_disclaimer": "l",
    },
    "environment": {
        "mcp_servers": [{"name": "m", "required_tools": ["t"], "version_constraint": ">1"}],
        "python_version": "3.12",
    },
    "default_model_policy": MODEL,
    "requirements": [REQUIREMENT],
    "tests": [
        {"id": "t", "description": "d", "inputs": {}, "expected_output": {"a": 1}, "validation_logic": "exact_match"}
    ],
    "compliance": {
        "audit_level": "full",
        "retention": "30_days",
        "generate_aibom": True,
        "generate_pdf_report": True,
        "require_signature": True,
        "mask_pii": False,
        "integrity": {
            "input_mode": "redacted",
            "output_mode": "off",
            "integrity_level": "checksum",
            "hash_algorithm": "sha256",
        },
    },
    "identity": {
        "min_scope": "admin",
        "required_roles": ["r"],
        "required_permissions": ["p"],
        "inject_user_profile": True,
        "inject_locale_info": False,
        "anonymize_pii": True,
    },
    "guardrails": {
        "circuit_breaker": {
            "failure_rate_threshold": 0.5,
            "window_seconds": 3,
            "recovery_timeout_seconds": 4,
            "scope": "recipe",
        },
        "drift_check": {
            "input_drift_threshold": 0.3,
            "output_drift_threshold": 0.3,
            "baseline_dataset_id": "b",
        },
        "spot_check_rate": 0.5,
    },
}


def release_22(status="draft"):
    """Return a file that only 0.22 and 0.23 take: all their words. A draft has an agent that is only wished for."""
    ref = WISH if status == "draft" else "known"
    nodes = [
        agent("write", inputs_map={"q": "topic"}, presentation=LOOKS, metadata={"team": "desk"}, **ON_A_NODE),
        {"id": "wish", "type": "agent", "agent_ref": ref},
        {"id": "mind", "type": "agent", "cognitive_profile": MIND, "model_policy": {**MODEL}},
        {**EVALUATOR, "fail_route": "write"},
        ASK,
        INVENT,
        router("end", {"again": "write"}, ""),
    ]
    edge_pairs = [("write", "wish"), ("wish", "mind"), ("mind", "invent"), ("invent", "judge"), ("ask", "end")]
    around = {key: AROUND[key] for key in ("interface", "state")}
    return content(nodes, edge_pairs, topology={"status": "valid"}, **around, **LATER, status=status)


def changed(recipe, path, value):
    """Return a copy of a recipe in which something else stands at a path."""
    copied = deepcopy(recipe)
    part = copied
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return copied


def without(recipe, path):
    """Return a copy of a recipe in which nothing stands at a path."""
    copied = deepcopy(recipe)
    part = copied
    for key in path[:-1]:
        part = part[key]
    del part[path[-1]]
    return copied
