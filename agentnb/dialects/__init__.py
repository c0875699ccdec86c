"""dialects: how people write agents. A folder a dialect; its loader translates into a Recipe, and nothing runs."""
