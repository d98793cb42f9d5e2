"""Named algorithms: a method, an inner loop, and a paper's settings; no logic.

``tabular`` has those for known models and simulators, ``neural`` those for environments.
"""
