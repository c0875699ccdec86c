"""draw: pictures of recipes and runs, one look for every dialect: DOT, SVG and Mermaid."""
