"""Exact enumeration of the distribution that a drafter and a rule induce."""
