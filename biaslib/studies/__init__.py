"""One file a study: model and stimuli in, tidy scores out."""
