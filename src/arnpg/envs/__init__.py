"""Environments on the device: the interface, and Acrobot, CartPole and Pendulum as Gymnasium has them."""

from .acrobot import Acrobot as Acrobot
from .cartpole import CartPole as CartPole
from .env import AbstractEnvironment as AbstractEnvironment
from .env import BoxActions as BoxActions
from .env import DiscreteActions as DiscreteActions
from .env import Step as Step
from .env import Transition as Transition
from .pendulum import Pendulum as Pendulum

__all__ = [
    "AbstractEnvironment",
    "Acrobot",
    "BoxActions",
    "CartPole",
    "DiscreteActions",
    "Pendulum",
    "Step",
    "Transition",
]
