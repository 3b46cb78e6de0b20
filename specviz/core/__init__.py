"""The evidence and the algorithm's rules, without a model: numpy only, imports nothing of ours."""
