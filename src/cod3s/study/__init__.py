"""Human plausibility studies: items from stored outputs, a page to rate them on, a store, the analysis."""
