"""coreason: recipes with a blackboard, agents, people and routers, in YAML, JSON or as a RecipeDefinition."""
