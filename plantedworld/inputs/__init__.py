"""The inputs of each study in the profile `planted`, one file a study."""
