"""run_modules.py FOLDER PLAN: on every rank of an exported folder, what torch.distributed is asked for, as lines of JSON; and that
stages one behind another run each module once, in the order of the model."""

import itertools
import json
import os
import sys

sys.path[:0] = [sys.argv[1], os.path.dirname(os.path.abspath(__file__))]

import torch  # noqa: E402

import parallelize  # noqa: E402


class Leaf(torch.Module):
    def forward(self, x):
        return torch.Tensor([*x.trace, self.path])


class Model(torch.Module):
    """Modules of the plan's weights, one behind another; those of a layer in a module of their own."""

    def forward(self, **inputs):
        x = torch.Tensor()
        for name, each in self.calls:
            x = self.get_submodule(name)(x)
        return x


class Block(torch.Module):
    def forward(self, x):
        for each in list(self._modules.values()):
            x = each(x)
        return x


def model(names):
    made = Model()
    made.calls = []
    listed = [name for stage in getattr(parallelize, "STAGE_MODULES", []) for name in stage]
    for name, leaf in [*names, *((name, None) for name in listed if not any((each + ".").startswith(name + ".") for each, _ in names))]:
        owner, path = made, []
        for part in name.split("."):
            path.append(part)
            if part not in owner._modules:
                setattr(owner, part, Leaf() if ".".join(path) == name else Block())
                owner._modules[part].path = ".".join(path)
            owner = owner._modules[part]
        if leaf:
            setattr(owner, leaf, torch.Parameter())
    for name, each in made._modules.items():
        inner = [f"{name}.{child}" for child in each._modules if child.isdigit()]
        made.calls += [(path, None) for path in inner or [name]]
    return made


class Mesh:
    mesh_dim_names = tuple(parallelize.MESH)

    def __init__(self, place):
        self.place = dict(zip(parallelize.MESH, place))

    def __getitem__(self, axis):
        return Axis(axis, self)

    def get_local_rank(self, axis):
        return self.place[axis]


class Axis:
    def __init__(self, axis, mesh):
        self.axis, self.mesh = axis, mesh

    def get_group(self):
        return self.axis

    def __str__(self):
        return self.axis


def main():
    with open(sys.argv[2]) as file:
        graph = json.load(file)["graph"]
    names = []
    for op in graph["operators"]:
        for tensor in op["inputs"] if op["direction"] == "forward" else ():
            given = graph["tensors"][tensor] if tensor >= 0 else {}
            owner, _, leaf = given.get("name", "").rpartition(".")
            if given.get("role") == "weight" and (owner, leaf) not in names:
                names.append((owner, leaf))
    stages = {}
    parallelize.Tied = None
    for place in itertools.product(*map(range, parallelize.MESH.values())):
        torch.asked.clear()
        mesh = Mesh(place)
        parts = parallelize.parallelize(model(names), mesh)
        if hasattr(parallelize, "schedule"):
            parallelize.schedule(parts, None, mesh)
            for part in parts:
                stages[parallelize.STAGE_MODULES.index(part.names)] = part
        if hasattr(parallelize, "context"):
            parallelize.context({name: name for name in parallelize.INPUTS}, mesh)
        print(json.dumps({"rank": dict(mesh.place), "asked": torch.asked}))
    if stages:
        x = None
        for index in sorted(stages):
            x = stages[index](x) if x is not None else stages[index]()
        whole = model(names)()
        if x.trace != whole.trace:
            sys.exit(f"stages run {x.trace}, the model {whole.trace}")
        print(json.dumps({"stages": len(stages), "modules": len(x.trace)}))


if __name__ == "__main__":
    main()
