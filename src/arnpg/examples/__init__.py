"""Models to try things on, each a function that returns an ``MDP``; read them to learn how to build your own."""

from arnpg.examples.downlink import downlink
from arnpg.examples.hazard_grid import hazard_grid
from arnpg.examples.hospital_ward import hospital_ward
from arnpg.examples.inventory import inventory
from arnpg.examples.multiclass_queue import multiclass_queue
from arnpg.examples.random_cmdp import random_cmdp
from arnpg.examples.two_class_queue import two_class_queue

__all__ = [
    "downlink",
    "hazard_grid",
    "hospital_ward",
    "inventory",
    "multiclass_queue",
    "random_cmdp",
    "two_class_queue",
]
