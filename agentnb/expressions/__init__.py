"""Templates, conditions and paths, compiled and checked when a recipe is loaded."""
