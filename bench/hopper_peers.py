"""The peers' rows of ``neural_hopper.py``: a batch of 2,048 steps for each line that is read.

An interpreter that has the peers runs this; nothing of arnpg is imported here.
"""

import contextlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable

COUNT, STEPS = 8, 256
WARM = 2


def sb3() -> Callable[[], object]:
    """PPO of Stable-Baselines3 with its defaults, but for the steps of a batch."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    env = make_vec_env("Hopper-v4", n_envs=COUNT, seed=0)
    model = PPO("MlpPolicy", env, n_steps=STEPS, seed=0, device="cpu")
    return lambda: model.learn(COUNT * STEPS, reset_num_timesteps=False)


def morl() -> Callable[[], object]:
    """MO-PPO of MORL-Baselines with its defaults, its wrappers included."""
    import mo_gymnasium
    import numpy as np
    from morl_baselines.single_policy.ser.mo_ppo import MOPPO, MOPPONet, make_env

    name = "mo-hopper-v5"
    makers = [make_env(name, index, index + 1, "bench", 0.995) for index in range(COUNT)]
    envs = mo_gymnasium.wrappers.vector.MOSyncVectorEnv(makers)
    net = MOPPONet(envs.single_observation_space.shape, envs.single_action_space.shape, 3)
    agent = MOPPO(0, net, np.ones(3, np.float32) / 3, envs, steps_per_iteration=STEPS, device="cpu")
    return lambda: agent.train(time.time(), 0, 1)


def main() -> None:
    import torch

    warnings.filterwarnings("ignore")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    train = {"sb3": sb3, "morl": morl}[sys.argv[1]]()
    with contextlib.redirect_stdout(sys.stderr):
        for _ in range(WARM):
            train()
    print("ready", flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        with contextlib.redirect_stdout(sys.stderr):
            train()
        found = (COUNT * STEPS, time.perf_counter() - wall, time.process_time() - cpu)
        print(json.dumps({"train": found}), flush=True)


if __name__ == "__main__":
    main()
