"""Drawings of recipes and runs as DOT, SVG and Mermaid, in one style for all dialects."""
