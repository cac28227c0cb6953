"""What the papers' measures make of planted worlds: estimates beside the truth."""
