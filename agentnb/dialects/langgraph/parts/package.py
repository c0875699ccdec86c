"""The only module that imports LangGraph and langchain-core, from which the dialect takes its building blocks."""

from __future__ import annotations

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal import _constants as keys
from langgraph._internal._runnable import RunnableCallable
from langgraph._internal._scratchpad import PregelScratchpad
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
from langgraph.errors import GraphInterrupt, InvalidUpdateError, ParentCommand
from langgraph.graph.message import add_messages
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.types import Command, Overwrite, Send

__all__ = [
    "MISSING",
    "AnyValue",
    "BaseMessage",
    "BinaryOperatorAggregate",
    "Command",
    "DeltaChannel",
    "EphemeralValue",
    "ExecutionInfo",
    "GraphInterrupt",
    "InvalidUpdateError",
    "LastValue",
    "Overwrite",
    "ParentCommand",
    "PregelScratchpad",
    "Runnable",
    "RunnableCallable",
    "Runtime",
    "Send",
    "Topic",
    "UntrackedValue",
    "add_messages",
    "convert_to_messages",
    "keys",
    "var_child_runnable_config",
]
