"""The only module that imports Burr."""

from __future__ import annotations

from burr.core.action import Action, Condition
from burr.core.application import (
    PRIOR_STEP,
    SEQUENCE_ID,
    Application,
    TracerFactoryContextHook,
    _adjust_single_step_output,
    _arun_function,
    _arun_multi_step_streaming_action,
    _arun_single_step_streaming_action,
    _run_function,
    _run_multi_step_streaming_action,
    _run_reducer,
    _run_single_step_streaming_action,
    _validate_reducer_writes,
    _validate_result,
)
from burr.core.state import DeleteField, SetFields, State, StateDelta
from burr.core.typing import TypingSystem
from burr.lifecycle.internal import LifecycleAdapterSet
from burr.visibility.tracing import TracerFactory

# The parts of Application.step and Application.stream_result that handle an action.
adjust_output = _adjust_single_step_output
check_result = _validate_result
check_writes = _validate_reducer_writes
run_function = _run_function
arun_function = _arun_function
run_reducer = _run_reducer
stream_single = _run_single_step_streaming_action
stream_multi = _run_multi_step_streaming_action
astream_single = _arun_single_step_streaming_action
astream_multi = _arun_multi_step_streaming_action

__all__ = [
    "PRIOR_STEP",
    "SEQUENCE_ID",
    "Action",
    "Application",
    "Condition",
    "DeleteField",
    "LifecycleAdapterSet",
    "SetFields",
    "State",
    "StateDelta",
    "TracerFactory",
    "TracerFactoryContextHook",
    "TypingSystem",
    "adjust_output",
    "arun_function",
    "astream_multi",
    "astream_single",
    "check_result",
    "check_writes",
    "run_function",
    "run_reducer",
    "stream_multi",
    "stream_single",
]
