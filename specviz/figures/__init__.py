"""Figures: everything that can be drawn from a trace, loaded when first used."""
