"""Networks that no maintained library has, in plain PyTorch with the official tensor names."""
