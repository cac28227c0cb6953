"""The papers' formulas. NumPy and SciPy only; arrays in, numbers out; no files, no models."""
