"""The human plausibility study: items from stored outputs, a page to rate them on, a store, and the analysis."""
