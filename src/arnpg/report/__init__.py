"""Pictures and pages of what was found, drawn from stored data alone."""
