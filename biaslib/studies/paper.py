"""The profile ``paper``: the inputs of each study from released data, with released models."""

from biaslib.studies import study1_grounded, study2_masked, study3_clip_audit, study4_captions

PROFILE = "paper"
MODELS = ENTRIES = OPTIONS = ()

study1_grounded = study1_grounded.paper_inputs
study2_masked = study2_masked.paper_inputs
study3_clip_audit = study3_clip_audit.paper_inputs
study4_captions = study4_captions.paper_inputs
