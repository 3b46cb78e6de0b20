"""Drafters: methods that propose tokens and report the distribution q each was drawn from."""
