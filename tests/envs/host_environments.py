"""Small environments written by hand, good and bad, for the tests of the host's side."""

import os
import pathlib
import signal
import time

import gymnasium
import numpy as np
from gymnasium import spaces


class Walk(gymnasium.Env):
    """A walk on a line from a random start: over at the right end (terminated) or after ``patience`` steps (truncated).

    The observation is the position, then the number of steps; the reward is the position after the step.
    """

    def __init__(self, length=5.0, patience=8, noise=0.0, start=1.0):
        self.observation_space = spaces.Box(-100.0, 100.0, (2,), np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float64)
        self.length, self.patience, self.noise, self.start = length, patience, noise, start
        self.given, self.closed = [], False

    def close(self):
        self.closed = True

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.elapsed = self.start * self.np_random.uniform(), 0
        return self.seen(), {"start": self.position}

    def seen(self):
        return np.array([self.position, self.elapsed], np.float64)

    def step(self, action):
        self.given.append(action)
        self.position += float(np.asarray(action).reshape(-1)[0]) + self.noise * self.np_random.normal()
        self.elapsed += 1
        info = {"cost": abs(float(np.asarray(action).reshape(-1)[0])), "place": np.array([self.position, -1.0])}
        over = self.position >= self.length
        return self.seen(), self.position, over, self.elapsed >= self.patience, info


class TwoRewards(Walk):
    """A vector of rewards, with the space and the names that MO-Gymnasium's environments state."""

    reward_names = ("position", "effort")

    def __init__(self, **options):
        super().__init__(**options)
        self.reward_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def step(self, action):
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, np.array([reward, -info.pop("cost")], np.float32), terminated, truncated, info


class UnnamedRewards(TwoRewards):
    """The same, without any names."""

    reward_names = None


class SixTuple(Walk):
    """The cost beside the reward, as safety environments give it."""

    def step(self, action):
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward, 2 * info.pop("cost"), terminated, truncated, info


class Spaces(gymnasium.Env):
    """Any two spaces; observations are samples, and what was given as an action is kept."""

    def __init__(self, observation_space, action_space):
        self.observation_space, self.action_space = observation_space, action_space
        self.given = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), repr(action)
        self.given.append(action)
        self.last = self.observation_space.sample()
        return self.last, 1.0, False, False, {}


class Misbehaving(Walk):
    """Does the one thing that ``fault`` says, in its third step or in a reset."""

    def __init__(self, fault, at=3, **options):
        super().__init__(**options)
        self.fault, self.at = fault, at

    def reset(self, *, seed=None, options=None):
        seen, info = super().reset(seed=seed, options=options)
        if self.fault == "over at reset":
            info["terminated"] = True
        if self.fault == "no info":
            return seen
        if self.fault == "reset raises":
            raise OSError("the port is in use")
        return seen, info

    def step(self, action):
        seen, reward, terminated, truncated, info = super().step(action)
        if self.elapsed < self.at:
            return seen, reward, terminated, truncated, info
        match self.fault:
            case "nan observation":
                seen[1] = np.nan
            case "nan reward":
                reward = np.nan
            case "late vector":
                reward = np.array([reward, 0.0])
            case "short":
                return seen, reward, terminated, info
            case "shape":
                seen = np.append(seen, 0.0)
            case "dtype":
                seen = seen.astype(np.complex128)
            case "raises":
                raise RuntimeError("the simulator fell over")
            case "done is text":
                terminated = "no"
            case "cost is nan":
                info["cost"] = np.inf
            case "key goes away":
                info.pop("cost")
        return seen, reward, terminated, truncated, info


class VectorMisbehaving(TwoRewards):
    """Its reward vector changes its length, or holds a number that is none."""

    def __init__(self, fault, **options):
        super().__init__(**options)
        self.fault = fault

    def step(self, action):
        seen, reward, *rest = super().step(action)
        if self.elapsed >= 3:
            reward = {"long": np.append(reward, 0.0), "number": 1.0, "nan": reward * [1, np.nan]}[self.fault]
        return seen, reward, *rest


class OddOnes(Walk):
    """Made one after the other; those whose number is in ``odd`` do what ``fault`` says in their third step."""

    made = 0

    def __init__(self, fault, odd, **options):
        super().__init__(**options)
        self.fault = fault if OddOnes.made in odd else None
        OddOnes.made += 1

    def step(self, action):
        seen, reward, terminated, truncated, info = super().step(action)
        if self.fault is not None and self.elapsed == 3:
            if self.fault == "raises":
                raise RuntimeError("the simulator fell over")
            if self.fault == "nan":
                seen = seen * np.nan
            if self.fault == "cost":
                info["cost"] = np.nan
        return seen, reward, terminated, truncated, info


class Fragile(Walk):
    """Reads from a file what to do in its third step, and takes it away, so that it happens once: die or hang."""

    def __init__(self, folder, **options):
        super().__init__(**options)
        self.folder = pathlib.Path(folder)

    def step(self, action):
        found = super().step(action)
        if self.elapsed == 3:
            self.obey()
        found[-1]["simulator"] = (x for x in ())  # cannot be sent to another process
        return found

    def obey(self):
        order = self.folder / "order"
        try:
            word = order.read_text()
            if not word.startswith("always "):
                order.unlink()  # only one of several succeeds
        except FileNotFoundError:
            return
        if word.endswith("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        if word.endswith("exit"):
            os._exit(7)
        if word.endswith("hang"):
            time.sleep(3600)
