"""Where a model is: its name, folder, files, download and weights, and the registry of models."""
