"""Neural policies on the device: networks, rollouts, advantages, the natural gradient, and the inner loop of them."""

from .inner_loop import NeuralInnerLoop as NeuralInnerLoop
from .networks import Network as Network
from .rollout import Rollout as Rollout

__all__ = ["Network", "NeuralInnerLoop", "Rollout"]
