"""Policies as plain arrays and a few words, for files without pickle; and what parts are called in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from arnpg.errors import ModelError, SettingsError

from .advantages import GeneralisedAdvantages, MonteCarlo
from .combine import AsTheyAre, Each, Together
from .networks import MLP, AbstractPolicy, CategoricalPolicy, GaussianPolicy, fan_in_uniform, orthogonal
from .standardise import Standardised
from .values import AbstractValue, Discounted, EpisodeTotal, PathTotal

__all__ = [
    "ACTIVATIONS",
    "WORDS",
    "activation_name",
    "policy_from_arrays",
    "policy_to_arrays",
    "value_from_word",
    "word_of_value",
]

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "elu": jax.nn.elu,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
}

# Settings that are no numbers, by the name of their field.
WORDS: dict[str, Mapping[str, Any]] = {
    "activation": ACTIVATIONS,
    "initialise": {"default": fan_in_uniform, "orthogonal": orthogonal},
    "combine": {"together": Together(), "each": Each(), "raw": AsTheyAre()},
    "advantages": {"monte-carlo": MonteCarlo(), "gae": GeneralisedAdvantages()},
    "values": {"path": PathTotal(), "episode": EpisodeTotal(), "discounted": Discounted()},
}

KINDS = {"categorical": CategoricalPolicy, "gaussian": GaussianPolicy}


def activation_name(policy: AbstractPolicy) -> str:
    """The word for a policy's activation; a file can hold no other."""
    found: Any = policy.policy if isinstance(policy, Standardised) else policy
    for name, function in ACTIVATIONS.items():
        if found.network.activation is function:
            return name
    raise SettingsError(
        f"activation {found.network.activation!r} cannot be saved; use one of {', '.join(ACTIVATIONS)}, or train "
        "without out."
    )


def policy_to_arrays(policy: AbstractPolicy) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """What ``policy_from_arrays`` needs; leading axes of the parameters are kept."""
    if isinstance(policy, Standardised):
        words, arrays = policy_to_arrays(policy.policy)
        return words, {**arrays, "shift": np.asarray(policy.shift), "scale": np.asarray(policy.scale)}
    kind = next(name for name, of in KINDS.items() if isinstance(policy, of))
    found: Any = policy
    layers = {"weights": found.network.weights, "biases": found.network.biases}
    arrays = {f"{name}/{i}": np.asarray(leaf) for name, leaves in layers.items() for i, leaf in enumerate(leaves)}
    if kind == "gaussian":
        arrays["log_sd"] = np.asarray(found.log_sd)
    return {"kind": kind, "activation": activation_name(policy)}, arrays


def policy_from_arrays(words: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> AbstractPolicy:
    """The policy that ``policy_to_arrays`` took apart, its parameters as NumPy arrays."""
    kind, activation = words.get("kind"), words.get("activation")
    if kind not in KINDS or activation not in ACTIVATIONS:
        raise ModelError(f"a policy of kind {kind!r} with activation {activation!r} is not known; update arnpg.")
    count = sum(name.startswith("weights/") for name in arrays)
    weights, biases = (tuple(arrays[f"{name}/{i}"] for i in range(count)) for name in ("weights", "biases"))
    network: Any = MLP(weights, biases, ACTIVATIONS[activation])  # type: ignore[arg-type]
    policy = GaussianPolicy(network, arrays["log_sd"]) if kind == "gaussian" else CategoricalPolicy(network)  # type: ignore
    return Standardised(policy, arrays["shift"], arrays["scale"]) if "shift" in arrays else policy


def word_of_value(value: AbstractValue) -> str:
    """``episode``, ``discounted 0.99``."""
    word = next(word for word, part in WORDS["values"].items() if type(part) is type(value))
    at = value.at if isinstance(value, Discounted) else None
    return word if at is None else f"{word} {at!r}"


def value_from_word(word: str) -> AbstractValue:
    """The notion of value that ``word_of_value`` put into a word."""
    name, _, at = word.partition(" ")
    return Discounted(float(at)) if at else WORDS["values"][name]
