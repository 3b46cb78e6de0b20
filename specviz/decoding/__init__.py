"""The loop: a drafter proposes, the target verifies in one pass, a rule decides, all on record."""
