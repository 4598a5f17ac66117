#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plan that `weir place` shows runs, with the bits of one device.

For every graph of graphs/ on ps=2,worker=2, its outputs and, where it can be
trained, its training step, by search, in turn and drawn, with one of three
seeds:

- the plan of `place --json` is the plan that `run` or `train` used, byte for
  byte (--save-plan);
- outputs and trained variables have the bits of one device;
- every variable has one home, in training and in inference;
- a plan that `place` wrote is accepted by `run --plan` and `train --plan`.

At least ten graphs must have had edges between tasks. `quick` looks at some
graphs and ways only. Several graphs are looked at at once.

  test_plans.py WEIR SOURCE_ROOT [quick]
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import sizes

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
QUICK = "quick" in sys.argv[3:] or "CLI_SANITIZED" in os.environ
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
CLUSTER = "ps=2,worker=2"
SOME = ("tiny_matmul", "mlp", "recurrent", "regression", "mlp_train",
        "mlp_mesh")


class Wrong(Exception):
    pass


def weir(*args, code=0):
    p = subprocess.run([WEIR, *map(str, args)], env=ENV, timeout=300,
                       capture_output=True, text=True)
    if code is not None and p.returncode != code:
        raise Wrong(f"{args[:1]} {args[1:]}: exit {p.returncode}: {p.stderr}")
    return p


def data_of(path):
    """A `data:` of zeros for a graph that leaves it to its users."""
    values, batch = {}, 0
    shown = json.loads(weir("show", "graph", path, "--json").stdout)
    for node in shown["nodes"]:
        if node["op"] == "input":
            batch, *shape = map(int, re.findall(r"\d+", node["types"][0])[1:])
            item = 0
            for size in reversed(shape):
                item = [item] * size
            values[node["name"]] = [item] * batch
    text = json.dumps(values)
    return ("data: {train: {source: memory, "
            f"values: {text}, batch: {batch}}}}}\n")


class Graph:
    def __init__(self, path, seed, folder):
        self.path, self.folder = path, pathlib.Path(folder)
        self.placers = ("search", "round_robin", f"random:{seed}")
        self.smaller = sizes.SMALLER.get(path.name, [])
        self.edges = 0  # between tasks, the most of any plan
        self.homes = {}  # by placer: of variables
        text = path.read_text()
        self.trains = "\ntrain:" in text
        if self.trains and "\ndata:" not in text:
            self.path = self.folder / path.name
            self.path.write_text(text + data_of(path))

    def find_feeds(self):
        """Random values for every input that has no default."""
        self.feeds, done = [*self.smaller], False
        while not done:
            p = weir("run", self.path, "--json", "-q", *self.feeds, code=None)
            m = re.search(r"W4012\]: (\w+):", p.stderr)
            done = p.returncode != 5 or not m
            if not done:
                self.feeds += ["-i", f"{m.group(1)}=random:seed=3"]
        if p.returncode:
            raise Wrong(f"exit {p.returncode}: {p.stderr}")
        self.alone = p.stdout

    def place(self, placer, *more):
        return weir("place", self.path, "--cluster", CLUSTER, "--placer",
                    placer, "--json", "-q", *more).stdout

    def compare(self, what, placer, said, path):
        """The plan |said| with the one in |path|."""
        used = path.read_text()
        if said != used:
            raise Wrong(f"{what}, {placer}: place and the run have other plans")
        plan = json.loads(said)
        self.edges = max(self.edges, len(plan["edges"]))
        homes = {n["name"]: n["device"] for n in plan["nodes"]
                 if n["op"] in ("var", "state")}
        for name, device in self.homes.setdefault(placer, homes).items():
            if homes.get(name, device) != device:
                raise Wrong(f"{placer}: {name} lives on {device} and, for "
                            f"{what}, on {homes[name]}")
        self.homes[placer].update(homes)

    def check_run(self, placer):
        saved, given = self.folder / "run.json", self.folder / "given.json"
        inference = ["--inference"] if self.trains else []
        place = ["--in-process", CLUSTER, "--placer", placer, "-q", "--json"]
        said = self.place(placer, *inference, *self.feeds)
        got = weir("run", self.path, *self.feeds, *place, "--save-plan", saved)
        if got.stdout != self.alone:
            raise Wrong(f"other bits on devices, {placer}")
        self.compare("outputs", placer, said, saved)
        if placer != "search":
            return
        weir("bench", self.path, *self.feeds, "--in-process", CLUSTER,
             "--runs", 1, "--warmup", 0, "--save-plan", saved)
        self.compare("bench", placer, said, saved)
        given.write_text(said)
        got = weir("run", self.path, *self.feeds, "--in-process", CLUSTER, "-q",
                   "--json", "--plan", given)
        if got.stdout != self.alone:
            raise Wrong(f"other bits by the plan of {placer}")

    def train(self, folder, *more):
        weir("train", self.path, *self.smaller, "--checkpoint", folder,
             "--steps", 2, "-q", *more)

    def check_train(self, placer, one):
        saved, given = self.folder / "train.json", self.folder / "step.json"
        many = self.folder / f"many-{placer}".replace(":", "-")
        self.train(many, "--in-process", CLUSTER, "--placer", placer,
                   "--save-plan", saved)
        said = self.place(placer, *self.smaller)
        self.compare("training", placer, said, saved)
        weir("checkpoint", "diff", one, many)
        if placer != "search":
            return
        given.write_text(said)
        more = self.folder / "given"
        self.train(more, "--in-process", CLUSTER, "--plan", given)
        weir("checkpoint", "diff", one, more)

    def check(self):
        self.find_feeds()
        for placer in self.placers:
            self.check_run(placer)
        if not self.trains:
            return
        one = self.folder / "one"
        self.train(one)
        for placer in self.placers:
            self.check_train(placer, one)


def check(path, seed):
    with tempfile.TemporaryDirectory() as folder:
        g = Graph(path, seed, folder)
        try:
            g.check()
        except Wrong as e:
            return g.edges, f"{path.name}: {e}"
        return g.edges, None


def main():
    graphs = sizes.graphs(ROOT)
    if QUICK:
        graphs = [g for g in graphs if g.name.split(".")[0] in SOME]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        seeds = [1 + i % 3 for i in range(len(graphs))]
        results = list(pool.map(check, graphs, seeds))
    bad = [why for _, why in results if why]
    cut = sum(edges > 0 for edges, _ in results)
    print(*bad, sep="\n")
    print(f"{len(graphs)} graphs, {cut} with edges between tasks, "
          f"{len(bad)} wrong")
    return 1 if bad or cut < (3 if QUICK else 10) else 0


sys.exit(main())
