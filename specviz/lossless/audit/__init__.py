"""Audits: any sampler against the target's distribution."""
