from __future__ import annotations

import asyncio
import inspect
import logging
from datetime import UTC, datetime

import pytest

from agentnb.clock import FrozenClock
from agentnb.errors import ExecutionError, RecipeError
from agentnb.world.tools.registry import ContextIntelligenceAPI, ToolRegistry
from agentnb.world.tools.tool_config import ToolConfig, ToolMetrics, ToolResult
from tests.world.tools.registry_samples import ALL_WAYS, OWN, WAYS, City, Failing, aecho, echo, registry_of

# -- which there are -------------------------------------------------------------------------------------------------


def test_tools_are_ordered_and_the_last_of_a_name_is_used():
    registry = registry_of(b=echo, a=echo, c=echo)
    registry.register_tool("b", {"description": "new", "handler": aecho})
    assert registry.get_available_tools() == ["b", "a", "c"]
    assert registry.get_tool_info("b").description == "new"
    assert registry.get_tool_info("z") is None
    assert registry.unregister_tool("a") is True
    assert registry.unregister_tool("a") is False
    assert registry.get_available_tools() == ["b", "c"]


def test_registries_are_independent_and_one_is_shared():
    assert ToolRegistry.get_instance() is ToolRegistry.get_instance()
    registry_of(a_tool_of_its_own=echo)
    assert "a_tool_of_its_own" not in ToolRegistry.get_instance().get_available_tools()


def test_an_invalid_tool_is_not_registered():
    registry = registry_of(a=echo)
    with pytest.raises(RecipeError):
        registry.register_tool("a", ToolConfig("a", input_schema={"p": {"type": "string", "pattern": "("}}))
    assert registry.get_tool_info("a").handler is echo


def test_a_tool_without_a_handler_is_registered_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING, "agentnb.tools"):
        registry = registry_of(idea={"description": "d", "inputs": ["x"]})
    assert "'idea' has no handler" in caplog.text
    assert registry.describe("idea")["input_schema"] == {"type": "object", "properties": {"x": {}}}


def test_tools_are_described_for_a_model():
    registry = registry_of(a={"description": "does a", "handler": echo, "inputSchema": OWN}, b=City.model_validate)
    assert registry.describe("z") is None
    first, second = registry.describe()
    assert first == registry.describe("a")
    assert (first["name"], first["description"]) == ("a", "does a")
    assert first["input_schema"] == registry.get_tool_info("a").schema
    assert first["input_schema"]["required"] == ["city"]
    assert second["name"] == "b"


# -- what comes of an execution --------------------------------------------------------------------------------------


@ALL_WAYS
@pytest.mark.parametrize("handler", [echo, aecho])
def test_a_tool_is_executed(run, handler):
    result = run(registry_of(t=handler), "t", {"a": [1]})
    assert (result.success, result.result, result.error, result.details) == (True, {"a": [1]}, None, None)


@ALL_WAYS
def test_a_tool_may_return_a_result_a_value_or_nothing(run):
    answers = [ToolResult(success=True, result=5), {"success": True, "result": 5}, 5]
    assert [run(registry_of(t=lambda _, a=answer: a), "t").result for answer in answers] == [5, 5, 5]
    nothing = run(registry_of(t=lambda _: None), "t")
    assert (nothing.success, nothing.result) == (True, None)


@ALL_WAYS
@pytest.mark.parametrize("name", ["z", "", None, 5, ["t"], {"t": 1}])
def test_an_unknown_tool_is_reported_with_the_available_ones(run, name):
    result = run(registry_of(first=echo, second=echo), name)
    assert not result.success
    assert result.error == f"Tool {name!r} not found. Available tools: first, second"
    assert run(ToolRegistry(), name).error.endswith("Available tools: none")


@ALL_WAYS
def test_a_forbidden_tool_is_reported_with_the_allowed_ones(run):
    registry = registry_of(a=echo, b=echo, c=echo)
    result = run(registry, "c", allowed=["a", "b"])
    assert not result.success
    assert result.error == "Tool 'c' is not allowed here. Allowed tools: a, b"
    assert run(registry, "c", allowed=[]).error.endswith("Allowed tools: none")
    assert run(registry, "a", allowed={"a"}).success


@ALL_WAYS
@pytest.mark.parametrize(
    ("schema", "params", "paths"),
    [
        (OWN, {"city": "O", "meta": {}}, ["city", "meta.role"]),
        (OWN, None, ["city"]),
        (OWN, [], ["city"]),
        (City, {"days": "many"}, ["city", "days"]),
        ({"type": "object", "properties": {"list": {"items": {"required": ["x"]}}}}, {"list": [{}]}, ["list[0].x"]),
    ],
)
def test_all_errors_of_parameters_are_reported_at_once(run, schema, params, paths):
    called = []
    result = run(registry_of(t={"handler": called.append, "inputSchema": schema}), "t", params)
    assert not result.success
    assert [each["path"] for each in result.details] == [f"t.inputParams.{path}" for path in paths]
    messages = "; ".join(f"{each['path']}: {each['message']}" for each in result.details)
    assert result.error == f"Input validation failed for tool 't': {messages}"
    assert called == []


@ALL_WAYS
@pytest.mark.parametrize(
    ("params", "received"), [([1], "array"), ("text", "string"), (5, "number"), (False, "boolean")]
)
def test_parameters_must_be_a_mapping(run, params, received):
    result = run(registry_of(t=echo), "t", params)
    message = f"Invalid type. Expected object but received {received}."
    assert result.details == [{"path": "t.inputParams", "message": message, "expected": "object", "received": received}]


@ALL_WAYS
def test_endless_parameters_are_a_failure(run):
    circle = {}
    circle["again"] = circle
    result = run(registry_of(t=echo), "t", circle)
    assert not result.success
    assert "nested too deeply" in result.error


@ALL_WAYS
def test_a_tool_without_a_handler_is_not_executable_and_its_parameters_are_reported_first(run):
    registry = registry_of(t={"inputSchema": OWN})
    assert run(registry, "t", {"city": "Oslo"}).error == "Tool 't' is not executable: it has no handler"
    assert "Input validation failed" in run(registry, "t").error


@ALL_WAYS
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no such city"), "ValueError: no such city"),
        (StopIteration("over"), "StopIteration: over"),
        (SystemExit(3), "it called sys.exit(3)"),
        (asyncio.CancelledError(), "CancelledError"),
    ],
)
def test_any_error_of_a_tool_is_a_failure(run, is_async, error, told):
    def handler(params):
        raise error

    async def ahandler(params):
        raise error

    result = run(registry_of(t=ahandler if is_async else handler), "t")
    assert not result.success
    assert result.error == f"Tool 't' failed: {told}"


@WAYS
@pytest.mark.parametrize("timeout", [None, 60])
def test_an_interrupt_is_not_a_failure(run, timeout):
    def handler(params):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(registry_of(t=ToolConfig("t", handler=handler, timeout=timeout)), "t")


@ALL_WAYS
@pytest.mark.parametrize(
    ("name", "params", "success"),
    [("t", {"city": "Oslo"}, True), ("t", {}, False), ("z", {}, False), ("idea", {}, False), ("bad", {}, False)],
)
def test_every_result_has_metrics(run, name, params, success):
    registry = registry_of(t={"handler": echo, "inputSchema": OWN}, idea={}, bad=lambda _: 1 / 0)
    before = datetime.now(UTC)
    result = run(registry, name, params)
    assert result.success is success
    metrics = result.metrics
    assert metrics.duration >= 0
    assert abs((metrics.end_time - metrics.start_time).total_seconds() - metrics.duration) < 1e-5
    assert abs((metrics.start_time - before).total_seconds()) < 3600
    assert result.to_dict()["metrics"].keys() == {"duration", "start_time", "end_time"}


def test_times_of_the_clock_override_those_of_the_tool():
    own_metrics = ToolMetrics(99, datetime(1999, 1, 1, tzinfo=UTC), datetime(1999, 1, 1, tzinfo=UTC))
    registry = ToolRegistry(clock=FrozenClock())
    registry.register_tool("t", lambda _: ToolResult(success=True, metrics=own_metrics))
    start = datetime(2000, 1, 1, tzinfo=UTC)
    assert registry.execute_tool("t").metrics == ToolMetrics(0, start, start)


@ALL_WAYS
def test_changes_to_parameters_by_a_tool_have_no_effect(run):
    def handler(params):
        params["list"].append(1)
        return len(params["list"])

    parameters = {"list": []}
    registry = registry_of(t=handler)
    assert [run(registry, "t", parameters).result for _ in range(2)] == [1, 1]
    assert parameters == {"list": []}


@ALL_WAYS
def test_a_tool_receives_a_dict_or_its_model(run):
    def wants_model(city: City) -> str:
        return f"{city.city} {city.days}"

    async def awants_model(city: City) -> str:
        return f"{city.city} {city.days}"

    registry = registry_of(
        raw={"handler": echo, "inputSchema": City},
        model=wants_model,
        amodel={"handler": awants_model, "inputSchema": OWN},
    )
    parameters = {"city": "Oslo", "days": "3"}
    assert run(registry, "raw", parameters).result == parameters
    assert run(registry, "model", parameters).result == run(registry, "amodel", parameters).result == "Oslo 3"


# -- the parts -------------------------------------------------------------------------------------------------------


def test_an_attempt_is_async_if_the_tool_is():
    registry = registry_of(t=echo, a=aecho)
    assert not inspect.iscoroutinefunction(registry.attempt("t"))
    assert inspect.iscoroutinefunction(registry.attempt("a"))
    with pytest.raises(ZeroDivisionError):
        registry_of(t=ToolConfig("t", handler=lambda _: 1 / 0, retry_count=5)).attempt("t")({})


@pytest.mark.parametrize("name", ["z", "idea"])
def test_an_invalid_tool_has_no_attempt(name):
    with pytest.raises(ExecutionError) as raised:
        registry_of(idea={}).attempt(name)
    assert [problem.code for problem in raised.value.problems] == ["X360"]


# -- the context -----------------------------------------------------------------------------------------------------


class Learning:
    def __init__(self, error=None):
        self.told, self.error = [], error

    def update_learning_context(self, **said):
        if isinstance(said["result"], dict):
            said["result"]["spoilt"] = True
        said["parameters"]["spoilt"] = True
        self.told.append(said)
        if self.error:
            raise self.error


class AsyncLearning(Learning):
    async def update_learning_context(self, **said):
        await asyncio.sleep(0)
        super().update_learning_context(**said)


CONTEXTS = pytest.mark.parametrize("cls", [Learning, AsyncLearning])


@WAYS
@CONTEXTS
def test_the_context_is_notified_of_each_run_once(run, cls):
    context = cls()
    assert isinstance(context, ContextIntelligenceAPI)
    registry = registry_of(t=ToolConfig("t", handler=Failing(ValueError("no"), {"a": 1}), type="search", retry_count=1))
    registry.context = context
    parameters = {"q": "x"}
    result = run(registry, "t", parameters)
    assert (result.result, parameters) == ({"a": 1}, {"q": "x"})
    (notification,) = context.told
    assert notification == {
        "tool_name": "t",
        "parameters": {"q": "x", "spoilt": True},
        "result": {"a": 1, "spoilt": True},
        "success": True,
        "context_data": {"execution_time": result.metrics.duration, "tool_type": "search"},
    }


@WAYS
def test_the_context_is_notified_of_failures_and_not_of_rejected_calls(run):
    context = Learning()
    registry = ToolRegistry(context=context)
    registry.register_tool("bad", lambda _: 1 / 0)
    registry.register_tool("strict", {"handler": echo, "inputSchema": OWN})
    registry.register_tool("idea", {})
    registry.register_tool("own", {"handler": echo, "type": "context_management"})
    for name in ("bad", "strict", "idea", "own", "z"):
        run(registry, name)
    assert [(notification["tool_name"], notification["success"]) for notification in context.told] == [("bad", False)]


@WAYS
@CONTEXTS
@pytest.mark.parametrize("error", [RuntimeError("broken"), SystemExit(1)])
def test_a_context_that_fails_is_logged_and_changes_nothing(run, cls, error, caplog):
    registry = registry_of(t=echo)
    registry.context = cls(error)
    with caplog.at_level(logging.WARNING, "agentnb.tools"):
        assert run(registry, "t", {"a": 1}).result == {"a": 1}
    assert "the context was not updated with tool 't'" in caplog.text


@CONTEXTS
def test_the_caller_notifies_the_context(cls):
    registry = ToolRegistry(context=cls())
    registry.register_tool("t", echo)
    registry.learn("t", {"a": 1}, ToolResult(success=True, result=5))
    asyncio.run(registry.alearn("t", {"a": 1}, ToolResult(success=False, error="no")))
    registry.learn("z", {}, ToolResult(success=True))
    asyncio.run(registry.alearn("z", {}, ToolResult(success=True)))
    assert [
        (notification["success"], notification["context_data"]["execution_time"])
        for notification in registry.context.told
    ] == [
        (True, 0.0),
        (False, 0.0),
    ]
