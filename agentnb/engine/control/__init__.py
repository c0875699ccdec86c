"""How people control a run and where it stops: interventions, breakpoints, budget, listeners, cursor."""
