"""The profile ``paper``: the inputs of each study from released data, with released models."""

from biaslib.studies import study1_grounded, study2_masked, study3_clip_audit, study4_captions

PROFILE = "paper"
MODELS = ENTRIES = OPTIONS = ()


def example() -> str:
    """Return the model that own_model audits until its reader names another one."""
    return "facebook/flava-full"


study1_grounded = study1_grounded.paper_inputs
study2_masked = study2_masked.paper_inputs
study3_clip_audit = study3_clip_audit.paper_inputs
study4_captions = study4_captions.paper_inputs
