"""Everything outside the graph: tools, models and people are reached through this package only."""
