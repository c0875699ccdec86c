"""Questions about two runs and many: compare, slice, search, coverage, fault localisation, sweeps.

A run is a Session, a SimulationTrace, or a run opened from a store. Everything here reads recorded rows; what runs a
recipe again (sweep, counterfactuals, minimize) makes sessions of its own and leaves those it was given unchanged.
"""
