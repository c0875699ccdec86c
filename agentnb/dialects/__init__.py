"""Dialects: the formats of agents. One folder per dialect.

Its loader translates a source to a Recipe, without running it.
"""
