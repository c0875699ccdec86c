"""Everything outside the graph: tools, models and people. Nodes reach them only through this package."""
