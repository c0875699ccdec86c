"""trace: who reads a run. The SimulationTrace with its steps, its DataFrames, and its file."""

from agentnb.trace.steps import SimulationStep, StepType
from agentnb.trace.trace import SimulationTrace

__all__ = ["SimulationStep", "SimulationTrace", "StepType"]
