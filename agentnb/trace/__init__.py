"""Traces of runs: the SimulationTrace with its steps, DataFrames, and file format."""

from agentnb.trace.steps import SimulationStep, StepType
from agentnb.trace.trace import SimulationTrace

__all__ = ["SimulationStep", "SimulationTrace", "StepType"]
