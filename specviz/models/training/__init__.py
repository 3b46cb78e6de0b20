"""Train what a target of your own needs for speculation: heads, or a draft.

:func:`specviz.models.training.train_heads.train_heads` is the entry (``specviz train heads``).
``features`` keeps the target's hidden states on disk, ``fit`` has the optimisers, the checkpoints
and the loop, each ``train_*`` module the loss of one kind, and ``measure_heads`` the card.

How the bundled family was made is apart from that, in :mod:`specviz.models.training.bundled`.
"""
