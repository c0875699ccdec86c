"""world: everything outside the graph. Tools, models and people come in here, and nowhere else."""
