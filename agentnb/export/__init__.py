"""Exports of a trace for other tools. Each is a method of SimulationTrace and imports its library when it is called.

Everything is derived from the frames of the trace, so secrets are masked as in the frames.
"""
