"""Models to try things on, each a function that returns an ``MDP``; read them to learn how to build your own."""

from arnpg.examples.random_cmdp import random_cmdp
from arnpg.examples.two_class_queue import two_class_queue

__all__ = ["random_cmdp", "two_class_queue"]
