"""Models of planted worlds: the oracle, the tiny checkpoints, and the regions that they read."""
