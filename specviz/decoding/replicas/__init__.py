"""Very many continuations at once, for the statistics."""
