"""A Hugging Face model as a target: forward passes, cache, masks, self-test."""
