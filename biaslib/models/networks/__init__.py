"""Networks that no maintained library has, as pre-trained models of transformers."""
