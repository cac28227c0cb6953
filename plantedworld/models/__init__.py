"""Models of planted worlds: the perfect one, the tiny checkpoints, and the regions they read."""
