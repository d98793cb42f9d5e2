"""The paper's experiments, one file and one frozen dataclass of settings each."""
