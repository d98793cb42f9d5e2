"""Environments: pure functions on the device, and any Gymnasium environment on the host."""

from .acrobot import Acrobot as Acrobot
from .cartpole import CartPole as CartPole
from .env import AbstractEnvironment as AbstractEnvironment
from .env import BoxActions as BoxActions
from .env import DiscreteActions as DiscreteActions
from .env import Step as Step
from .env import Transition as Transition
from .host import AbstractHostBatch as AbstractHostBatch
from .host import AbstractHostEnvironment as AbstractHostEnvironment
from .host import HostStep as HostStep
from .host_objectives import HostTransition as HostTransition
from .hosts import make_host as make_host
from .pendulum import Pendulum as Pendulum

__all__ = [
    "AbstractEnvironment",
    "AbstractHostBatch",
    "AbstractHostEnvironment",
    "Acrobot",
    "BoxActions",
    "CartPole",
    "DiscreteActions",
    "HostStep",
    "HostTransition",
    "Pendulum",
    "Step",
    "Transition",
    "make_host",
]
