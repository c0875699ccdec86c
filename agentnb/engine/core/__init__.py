"""The core of the engine: the step function, the run state, its plan, history, scheduler and time travel."""
