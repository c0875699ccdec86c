"""recipe: what an agent is, as frozen data, with its checks and its networkx graph."""
