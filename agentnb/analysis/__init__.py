"""Analysis of two or more runs: compare, slice, search, coverage, fault localization, sweeps.

A run is a Session, a SimulationTrace, or a run opened from a store. The functions read recorded rows; those that run a
recipe again (sweep, counterfactuals, minimize) create separate sessions and do not change the sessions passed to them.
"""
