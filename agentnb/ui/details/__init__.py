"""The details pane: what a node is and what a step did, as rows for the page."""
