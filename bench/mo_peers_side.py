"""The peers' runs of ``mo_peers.py``: one training, then the mean totals of its last policy over fresh episodes.

An interpreter that has the peers runs this; nothing of arnpg is imported here.
"""

import contextlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

EPISODES = {"fishwood-v0": 200, "fruit-tree-v0": 2000, "mo-hopper-v5": 40}
DISCOUNT = 0.99  # of NL-MO-PPO
COUNT = 4  # environments side by side
FIRST_LOG = 1.0  # added within the logarithm: an untrained critic's values lie around 0

Act = Callable[[Any, Any], Any]  # from an observation and the rewards accrued so far


def nl_mo_ppo(given: dict) -> Act:
    """MORL-Baselines' PPO for a utility of the mean value vector, with its defaults."""
    import mo_gymnasium
    import torch
    from morl_baselines.single_policy.ser.nl_mo_ppo import NLMOPPO

    envs = mo_gymnasium.wrappers.vector.MOSyncVectorEnv([lambda: mo_gymnasium.make(given["env"])] * COUNT)
    agent = NLMOPPO(0, envs, total_timesteps=given["steps"], gamma=DISCOUNT, seed=given["seed"], device="cpu")
    utility = {"fairness": lambda v: torch.log(v.clamp(min=0) + FIRST_LOG).sum(), "max-min": lambda v: v.min()}
    agent.policy_evaluate = lambda *_, **__: None  # its own evaluation is discounted, and begins from one seed
    agent.train(None, utility[given["kind"]])
    return lambda seen, accrued: agent.eval(seen, accrued).item()


def mo_ppo(given: dict) -> Act:
    """MORL-Baselines' MO-PPO with equal weights and its defaults: its non-linear methods take no real actions."""
    import gymnasium
    import mo_gymnasium
    import torch
    from morl_baselines.single_policy.ser.mo_ppo import MOPPO, MOPPONet, make_env

    def limited(index: int) -> Any:
        env = found = make_env(given["env"], given["seed"] + 100 * index, index + 1, "bench", 0.995)()
        while not isinstance(found, gymnasium.wrappers.TimeLimit):
            found = found.env
        found._max_episode_steps = given["limit"]
        return env

    envs = mo_gymnasium.wrappers.vector.MOSyncVectorEnv([lambda i=i: limited(i) for i in range(COUNT)])
    size = envs.reward_space.shape[0]
    net = MOPPONet(envs.single_observation_space.shape, envs.single_action_space.shape, size)
    weights = np.ones(size, np.float32) / size
    agent = MOPPO(0, net, weights, envs, steps_per_iteration=2048 // COUNT, device="cpu", seed=given["seed"])
    for iteration in range(given["steps"] // 2048):
        agent.train(time.time(), iteration, given["steps"] // 2048)
    unit = envs.envs[0]
    while not isinstance(unit, gymnasium.wrappers.NormalizeObservation):
        unit = unit.env

    def act(seen: Any, accrued: Any) -> Any:
        del accrued
        scaled = np.clip((seen - unit.obs_rms.mean) / np.sqrt(unit.obs_rms.var + unit.epsilon), -10, 10)
        with torch.no_grad():
            found = net.get_action_and_value(torch.as_tensor(scaled[None], dtype=torch.float32))[0]
        return np.clip(found[0].numpy(), -1, 1)

    return act


def totals(given: dict, act: Act) -> np.ndarray:
    """Mean undiscounted totals of drawn actions; what a policy sees as accrued is discounted, as in training."""
    import mo_gymnasium

    env, episodes = mo_gymnasium.make(given["env"]), EPISODES[given["env"]]
    found = np.zeros(env.unwrapped.reward_space.shape[0])
    for episode in range(episodes):
        seen = env.reset(seed=1_000_000 * (given["seed"] + 1) + episode)[0]
        accrued, over, age = 0 * found, False, 0
        while not over and age < given["limit"]:
            seen, reward, terminated, truncated, _ = env.step(act(seen, accrued.astype(np.float32)))
            accrued, over = accrued + DISCOUNT**age * reward, terminated or truncated
            found, age = found + reward, age + 1
    return found / episodes


def main() -> None:
    import torch

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    given = json.loads(sys.argv[1])
    torch.manual_seed(given["seed"])
    began = time.process_time()
    with contextlib.redirect_stdout(sys.stderr):
        act = (mo_ppo if given["env"].startswith("mo-hopper") else nl_mo_ppo)(given)
        spent = time.process_time() - began
        final = totals(given, act)
    print(json.dumps({"final": final.tolist(), "cpu": spent}))


if __name__ == "__main__":
    main()
