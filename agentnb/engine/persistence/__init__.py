"""A run as records: the journal, deltas and snapshots, and how a run is rebuilt from them."""
