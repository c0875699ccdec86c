"""tools: what the samples in YAML call: plain functions, each in a file beside the recipes."""
