"""What a model is shown: pictures opened and collated, their transforms, regions, the detector."""
