"""Tools of the YAML samples: plain functions, each in a file beside the recipes."""
