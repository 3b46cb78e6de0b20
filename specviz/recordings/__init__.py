"""Recorded runs of the bundled pair: one per kind of text and method, to be read without torch.

``shelf.py`` lists and opens them, ``record.py`` is the recipe that made them.
"""
