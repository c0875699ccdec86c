"""networkx: a directed graph from Python as a recipe; its nodes carry functions, tools, agents, people."""
