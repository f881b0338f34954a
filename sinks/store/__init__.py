"""Where decisions, their reasons and their evidence are kept, so that somebody can ask for them later."""
