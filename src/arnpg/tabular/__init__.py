"""Known models and simulators of tabular models."""
