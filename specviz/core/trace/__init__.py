"""The trace: what happened in a run, and whether it follows; numpy only.

- ``trace``: the class Trace, with ``columns`` inside and ``views`` outside
- ``files``: saving and loading; ``validity``: what a file must hold before anybody reads it
- ``replay``: ``trace.check()`` runs the rule again
- ``consistency``: do the numbers of a round agree with each other and with the seed?
- ``settings``: do the run's settings agree with what was recorded?
- ``measures``: acceptance, tokens per pass and the others, each with its convention
"""
