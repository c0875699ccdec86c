"""Recipes: agents as frozen data, with their checks and their networkx graph."""
