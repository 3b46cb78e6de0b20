"""Drafters: everything that can propose tokens and say from which law each one was drawn."""
