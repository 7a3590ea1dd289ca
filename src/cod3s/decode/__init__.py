"""From a source to answers that differ: the stages, the systems, and the searches behind them."""
