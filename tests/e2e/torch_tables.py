"""Random constraint tables, for torch_plans.py: rows that cut, replicate, recompute, pipeline and share states, drawn by seed."""

import random

SELECTORS = ["all", "kind:Linear", "kind:LayerNorm", "kind:Attention", "kind:Add", "kind:Gelu", "kind:Conv", "layer:0", "layer:1",
             "!kind:Attention", "kind:Linear & layer:1", "kind:Softmax", "kind:MatMul", "kind:Relu", "kind:Embedding"]
DIMENSIONS = ["batch", "sequence", "heads", "hidden", "feed-forward", "vocabulary", "channels", "height", "width", "experts"]


def draw_table(seed):
    """(number of devices, rows)"""
    dice = random.Random(seed)
    axes = dice.choice([{"a": 2}, {"a": 2}, {"a": 2, "b": 2}, {"a": 4}, {"a": 2, "b": 2}])
    names = list(axes)
    rows = ["mesh " + " ".join(f"{name}={size}" for name, size in axes.items())]
    piped = len(axes) == 2 and dice.random() < 0.3
    if piped:
        rows += ["spread layer:* : over b by count", f"micro-batches {dice.choice([2, 4])}",
                 f"schedule {dice.choice(['1f1b', 'gpipe', 'zb-h1', 'interleaved'])}"]
        names = ["a"]
    elif dice.random() < 0.4:
        rows.append("micro-batches 2")
    for _ in range(dice.randint(1, 5)):
        axis = dice.choice(names)
        if dice.random() < 0.12:
            rows.append(f"replicate {dice.choice(SELECTORS)} : by {axes[axis]} over {axis}")
        else:
            rows.append(f"split {dice.choice(SELECTORS)} : {dice.choice(DIMENSIONS)} over {axis}")
    if dice.random() < 0.4:
        rows.append(f"zero{dice.choice('123')} weight:* over {dice.choice(names)}")
    if dice.random() < 0.25:
        rows.append("recompute layer:* per layer")
    if dice.random() < 0.15:
        rows.append(f"coshard {dice.choice(SELECTORS)} : batch by 2")
    if dice.random() < 0.15:
        rows.append("offload all : " + dice.choice(["states", "activations"]))
    if dice.random() < 0.2:
        rows.append("attention all : plain")
    devices = 1
    for size in axes.values():
        devices *= size
    return devices, rows
