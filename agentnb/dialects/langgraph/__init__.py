"""LangGraph: a StateGraph, compiled or not, as a recipe that is stepped one node at a time.

`nb.load(graph)` reads it; the functions of nodes, reducers and conditions are called unchanged. Nothing of LangGraph is
imported unless a graph of it is loaded.
"""
