"""What there is to see of a run, step by step, worked out once.

``story.py`` lists the steps and finds out, for each, which sentences fit; ``words.py`` has the
sentences, as templates whose blanks are filled with a step's tokens and numbers. Both become
columns of the projection, so the player's script looks them up. ``frames.py``, ``views.py``,
``draws.py`` and ``tree.py`` read the same columns for pictures: stills, films, and what readers
without scripts see.
"""
