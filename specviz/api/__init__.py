"""What a person types, checked and put together: ``generate`` and ``stream``."""
