"""Campaigns of machine-made faults: `python -m campaign` runs them all and prints a row of figures for each."""
