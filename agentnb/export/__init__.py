"""Exports of a trace for other tools; each is a method of SimulationTrace and imports its library when it is called.

Everything is made from the frames of the trace, so secrets are masked as they are there.
"""
