"""Pictures of the player: a scene built once, painted in pixels or in vectors.

``scene.py`` has the primitives and measures letters, ``layout.py`` puts the views together,
``view_*.py`` draw one view each (they know a run and a frame, no back end), ``pixels.py`` paints
with Pillow and ``vector.py`` with matplotlib. Colours are named after their meaning, so a scene
knows no theme.
"""
