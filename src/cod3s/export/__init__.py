"""Turn a training run into a bundle."""
