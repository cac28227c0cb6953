"""Networks that no maintained library has."""
