"""Evaluation: systems and data, or stored outputs, become figures, tables, plots and a page."""
