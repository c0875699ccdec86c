"""Polaris' names of the schedules and of the hook registry, which serve every dialect."""

from __future__ import annotations

from agentnb.session.schedules import AllGraphSchedules, GraphEvent, HooksAPI, Schedule

OnGraphStart = Schedule.OnGraphStart
OnGraphComplete = Schedule.OnGraphComplete
OnGraphFailure = Schedule.OnGraphFailure
OnSystemStart = Schedule.OnSystemStart
OnSystemComplete = Schedule.OnSystemComplete
OnSystemError = Schedule.OnSystemError
OnDecisionStart = Schedule.OnDecisionStart
OnDecisionComplete = Schedule.OnDecisionComplete
OnSwitchStart = Schedule.OnSwitchStart
OnSwitchComplete = Schedule.OnSwitchComplete
OnLoopStart = Schedule.OnLoopStart
OnLoopIteration = Schedule.OnLoopIteration
OnLoopEnd = Schedule.OnLoopEnd
OnParallelStart = Schedule.OnParallelStart
OnParallelComplete = Schedule.OnParallelComplete
OnSystemTimeout = Schedule.OnSystemTimeout
OnSystemRetry = Schedule.OnSystemRetry
OnBranchCancelled = Schedule.OnBranchCancelled

__all__ = [
    "AllGraphSchedules",
    "GraphEvent",
    "HooksAPI",
    "OnBranchCancelled",
    "OnDecisionComplete",
    "OnDecisionStart",
    "OnGraphComplete",
    "OnGraphFailure",
    "OnGraphStart",
    "OnLoopEnd",
    "OnLoopIteration",
    "OnLoopStart",
    "OnParallelComplete",
    "OnParallelStart",
    "OnSwitchComplete",
    "OnSwitchStart",
    "OnSystemComplete",
    "OnSystemError",
    "OnSystemRetry",
    "OnSystemStart",
    "OnSystemTimeout",
    "Schedule",
]
