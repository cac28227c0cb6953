"""What the chapters show: a module for each, of its name, which its cells call."""
