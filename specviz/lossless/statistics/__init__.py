"""Tests of emitted tokens against the target's distribution, and what they can detect."""
