"""Design a study of human plausibility ratings."""
