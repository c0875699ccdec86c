"""The only module that imports LangGraph and langchain-core, from which the dialect takes its building blocks."""

from __future__ import annotations

from langchain_core.messages import (
    BaseMessage,
    convert_to_messages,
)
from langchain_core.runnables import Runnable, RunnableBinding, RunnableLambda, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.config import run_in_executor, var_child_runnable_config
from langchain_core.tools import StructuredTool
from langgraph import errors
from langgraph._internal import _constants as keys
from langgraph._internal._config import ensure_config
from langgraph._internal._runnable import RunnableCallable, RunnableSeq
from langgraph._internal._scratchpad import PregelScratchpad
from langgraph._internal._timeout import sync_timeout_unsupported
from langgraph._internal._typing import MISSING
from langgraph.channels import (
    AnyValue,
    BinaryOperatorAggregate,
    DeltaChannel,
    EphemeralValue,
    LastValue,
    Topic,
    UntrackedValue,
)
from langgraph.errors import (
    GraphBubbleUp,
    GraphInterrupt,
    GraphRecursionError,
    InvalidUpdateError,
    NodeError,
    NodeTimeoutError,
    ParentCommand,
)
from langgraph.graph import message as message_module
from langgraph.graph.message import add_messages
from langgraph.pregel._algo import identifier
from langgraph.pregel._call import get_runnable_for_task
from langgraph.pregel._messages import ensure_message_ids
from langgraph.pregel._retry import _should_retry_on as should_retry
from langgraph.pregel._retry import _TimedAttemptScope as TimedAttemptScope
from langgraph.pregel._utils import get_function_nonlocals
from langgraph.pregel.main import _coerce_context as coerce_context
from langgraph.runtime import ExecutionInfo, RunControl, Runtime
from langgraph.types import Command, Interrupt, Overwrite, Send, TimeoutPolicy
from xxhash import xxh3_128_hexdigest

NodeCancelledError = getattr(errors, "NodeCancelledError", RuntimeError)  # missing in early versions

__all__ = [
    "MISSING",
    "AnyValue",
    "BaseMessage",
    "BinaryOperatorAggregate",
    "Command",
    "DeltaChannel",
    "EphemeralValue",
    "ExecutionInfo",
    "GraphBubbleUp",
    "GraphInterrupt",
    "GraphRecursionError",
    "Interrupt",
    "InvalidUpdateError",
    "LastValue",
    "NodeCancelledError",
    "NodeError",
    "NodeTimeoutError",
    "Overwrite",
    "ParentCommand",
    "PregelScratchpad",
    "RunControl",
    "Runnable",
    "RunnableBinding",
    "RunnableCallable",
    "RunnableLambda",
    "RunnableSeq",
    "RunnableSequence",
    "RunnableWithFallbacks",
    "Runtime",
    "Send",
    "StructuredTool",
    "TimedAttemptScope",
    "TimeoutPolicy",
    "Topic",
    "UntrackedValue",
    "add_messages",
    "coerce_context",
    "convert_to_messages",
    "ensure_config",
    "ensure_message_ids",
    "get_function_nonlocals",
    "get_runnable_for_task",
    "identifier",
    "keys",
    "message_module",
    "run_in_executor",
    "should_retry",
    "sync_timeout_unsupported",
    "var_child_runnable_config",
    "xxh3_128_hexdigest",
]
