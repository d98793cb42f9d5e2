"""Solve one model on the devices that there are, and print what came out; run by ``test_sharded.py``.

python sharded_program.py [PORT PROCESS PROCESSES]
"""

import json
import sys

import jax

if len(sys.argv) > 1:
    port, process, processes = map(int, sys.argv[1:])
    jax.distributed.initialize(f"localhost:{port}", processes, process)

import arnpg
from arnpg.examples import multiclass_queue

mdp = multiclass_queue(64, discount=0.9)
criterion = arnpg.MaxMin({"served 1": 1.0, "served 2": 1.0})
counts = [1, 2, 4] if len(sys.argv) == 1 else [len(jax.devices())]
for count in counts:
    found = arnpg.solve(mdp, criterion, devices=jax.devices()[:count])
    shown = {"devices": count, "x64": jax.config.jax_enable_x64, "certified": found.certified}
    sys.stdout.write(json.dumps(shown | {"values": list(found.values.values()), "bound": found.bound}) + "\n")
