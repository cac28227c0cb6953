"""Side-by-side measurements: our code and what a user would pick instead, in one run."""
