"""The profile ``paper``: the inputs of each study from released data, with released models."""

PROFILE = "paper"
MODELS = ENTRIES = OPTIONS = ()
