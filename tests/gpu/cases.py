# SPDX-License-Identifier: Apache-2.0
"""Graphs that run and train on GPUs, the ways in which they do, and how far
from the CPU's their values may be. gpu-check and the tests on the stand-in for
CUDA read these lists: on both, the same commands run.

Each caller brings `weir(*arguments)`, which gives the output and the messages
of a command that must succeed, or raises Failure."""
import collections
import json
import os
import pathlib
import re

# `feeds`: for inputs without a default; `small`: sizes for the stand-in, where
# a product of matrices is slow.
Graph = collections.namedtuple("Graph", "name feeds small",
                               defaults=((), ()))
IMAGES = ("-i", "image=random:seed=3", "-i", "label=random:seed=3")
TOKENS = ("-i", "tokens=random:seed=3")
GRAPHS = (
    Graph("tiny_matmul"), Graph("regression"), Graph("newton"),
    Graph("mlp", small=("-p", "batch=16", "-p", "hidden=64")),
    Graph("wide", small=("-p", "branches=12", "-p", "size=24")),
    Graph("deep", small=("-p", "layers=9", "-p", "size=24")),
    Graph("conv_bn", small=("-p", "batch=2", "-p", "size=12")),
    Graph("embedding_classifier", small=("-p", "vocab=300")),
    Graph("lstm_scan"),
    Graph("recurrent", small=("-p", "vocab=60", "-p", "size=16")),
    Graph("lstm_lm", TOKENS, ("-p", "batch=2", "-p", "steps=5", "-p",
                              "vocab=50", "-p", "hidden=16")),
    Graph("rnn_char", TOKENS, ("-p", "batch=2", "-p", "steps=5", "-p",
                               "hidden=16")),
    Graph("transformer_block", small=("-p", "tokens=6", "-p", "d=24", "-p",
                                      "heads=3", "-p", "ffn=32")),
    Graph("logistic", IMAGES), Graph("mlp_train", IMAGES),
    Graph("lenet", IMAGES, ("-p", "batch=3")), Graph("lenet_train", IMAGES),
    Graph("lenet_photo", ("-i", "photo=random:seed=3")),
    Graph("transformer_train", IMAGES, ("-p", "d=16", "-p", "ffn=24")),
    Graph("mlp_mesh", ("-i", "x=random:seed=3")),
    Graph("matmul_mesh", ("-i", "a=random:seed=3", "-i", "b=random:seed=4")))

# Where a graph runs: all that has kernels on one GPU; in one process, here and
# there; over the processes of a cluster.
Way = collections.namedtuple("Way", "name rules cluster spread")
ALL_ON_GPU = "  - {match: '*', device: 'gpu:0', soft: true}\n"
WAYS = {w.name: w for w in (
    Way("one", ALL_ON_GPU, ("--in-process", "worker=1,gpu=1"), False),
    Way("spread", "", ("--in-process", "worker=1,gpu=2"), True),
    Way("local", "", ("--local", "ps=1,worker=2,gpu=1", "--task-threads", "1"),
        True))}
# Of the largest absolute value of a tensor: two orders of a sum differ by so
# much.
BOUND = 1e-5


class Failure(Exception):
    pass


def moved_to_gpus(text, rules):
    """The text of a graph without its own cluster and placement."""
    for section in ("placement", "cluster"):
        text = re.sub(rf"^{section}:.*\n(?: .*\n)*", "", text, flags=re.M)
    return text + (f"placement:\n{rules}" if rules else "")


def copied(graph, graphs, folder, rules):
    """The path of a copy of graph |graph| in |folder|."""
    text = pathlib.Path(graphs, graph + ".weir.yaml").read_text("utf-8")
    path = os.path.join(folder, graph + ".weir.yaml")
    pathlib.Path(path).write_text(moved_to_gpus(text, rules), "utf-8")
    return path


def on_gpus(plan_file):
    """Of a plan that was saved: how many nodes are on GPUs, and how many
    values cross between devices."""
    plan = json.loads(pathlib.Path(plan_file).read_text("utf-8"))
    return (sum("GPU" in n["device"] for n in plan["nodes"]),
            len(plan["edges"]))


# ---- Values


def numbers(data):
    if not isinstance(data, list):
        return [data]
    return [n for part in data for n in numbers(part)]


def difference_of(name, got, want):
    if (got["dtype"], got["shape"]) != (want["dtype"], want["shape"]):
        return f"{name} is {got['dtype']}{got['shape']}"
    a, b = numbers(got["data"]), numbers(want["data"])
    if got["dtype"][0] != "f":
        return None if a == b else f"{name} differs"
    if not all(isinstance(n, (int, float)) for n in a + b):
        return None if a == b else f"{name}: NaN or infinity differs"
    largest = max(map(abs, b), default=0)
    worst = max((abs(x - y) for x, y in zip(a, b)), default=0)
    if worst <= BOUND * largest:
        return None
    return f"{name} differs by {worst:.3g}, its largest value is {largest:.3g}"


def difference(got, want):
    """How the outputs |got|, JSON of `weir run`, differ from |want|; None: by
    no more than BOUND."""
    a, b = json.loads(got)["outputs"], json.loads(want)["outputs"]
    if a.keys() != b.keys():
        return f"outputs are {', '.join(a)}"
    return next(filter(None, (difference_of(k, a[k], b[k]) for k in b)), None)


# ---- Runs


def run_cpu(weir, row, path, small):
    return weir("run", path, "--json", "-q", *row.feeds,
                *(row.small if small else ()))[0]


def run_gpu(weir, row, way, path, plan, seed, small):
    placer = ("--placer", f"random:{seed}") if way.spread else ()
    return weir("run", path, "--json", "-v", *row.feeds,
                *(row.small if small else ()), *way.cluster, *placer,
                "--save-plan", plan)


def run_graph(weir, row, way, folders, seed=1, small=True):
    """Runs a graph on the CPU, and twice in the way |way|; |folders|: of the
    graphs, and for files. Gives the number of nodes on GPUs, that of values
    that crossed, and the messages; raises Failure."""
    graphs, work = folders
    path, plan = copied(row.name, graphs, work, way.rules), work + "/plan.json"
    want = run_cpu(weir, row, path, small)
    got, words = run_gpu(weir, row, way, path, plan, seed, small)
    again, _ = run_gpu(weir, row, way, path, plan, seed, small)
    problem = difference(got, want)
    if problem is None and "W6004" in words:
        problem = "no GPU: " + words
    if problem is None and got != again:
        problem = "two runs have different bits"
    if problem is not None:
        raise Failure(f"{row.name}, {way.name}, seed {seed}: {problem}")
    return (*on_gpus(plan), words)
