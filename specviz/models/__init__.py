"""Models: loading a pair, extra heads, the bundled family and its training recipe."""
