"""The trace: columns, views, files, replay and measures of a run, numpy only."""
