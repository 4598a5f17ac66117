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

# `feeds`: for inputs without a default; `sizes`: small ones, as a product of
# matrices is slow on the stand-in.
Graph = collections.namedtuple("Graph", "name feeds sizes",
                               defaults=((), ()))
IMAGES = ("-i", "image=random:seed=3", "-i", "label=random:seed=3")
TOKENS = ("-i", "tokens=random:seed=3")
GRAPHS = (
    Graph("tiny_matmul"), Graph("regression"), Graph("newton"),
    Graph("mlp", sizes=("-p", "batch=16", "-p", "hidden=64")),
    Graph("wide", sizes=("-p", "branches=12", "-p", "size=24")),
    Graph("deep", sizes=("-p", "layers=9", "-p", "size=24")),
    Graph("conv_bn", sizes=("-p", "batch=2", "-p", "size=12")),
    Graph("embedding_classifier", sizes=("-p", "vocab=300")),
    Graph("lstm_scan"),
    Graph("recurrent", sizes=("-p", "vocab=60", "-p", "size=16")),
    Graph("lstm_lm", TOKENS, ("-p", "batch=2", "-p", "steps=5", "-p",
                              "vocab=50", "-p", "hidden=16")),
    Graph("rnn_char", TOKENS, ("-p", "batch=2", "-p", "steps=5", "-p",
                               "hidden=16")),
    Graph("transformer_block", sizes=("-p", "tokens=6", "-p", "d=24", "-p",
                                      "heads=3", "-p", "ffn=32")),
    Graph("gpt_decode", sizes=("-p", "d=16", "-p", "heads=2", "-p", "room=6",
                               "-p", "vocab=30")),
    Graph("logistic", IMAGES), Graph("mlp_train", IMAGES),
    Graph("lenet", IMAGES, ("-p", "batch=3")), Graph("lenet_train", IMAGES),
    Graph("lenet_photo", ("-i", "photo=random:seed=3")),
    Graph("transformer_train", IMAGES, ("-p", "d=16", "-p", "ffn=24")),
    Graph("mlp_mesh", ("-i", "x=random:seed=3")),
    Graph("matmul_mesh", ("-i", "a=random:seed=3", "-i", "b=random:seed=4")))

# Networks of hundreds of nodes: their kernels are those of these graphs, and the
# stand-in would take minutes for them.
NETWORKS = ("resnet50", "mobilenet_v3", "bert_base", "gpt2_small")

# Where a graph runs: all that has kernels on one GPU; in one process, here and
# there; over the processes of a cluster.
Way = collections.namedtuple("Way", "name rules cluster spread")
LOCAL = ("--local", "ps=1,worker=2,gpu=1", "--task-threads", "1")
ALL_ON_GPU = "  - {match: '*', device: 'gpu:0', soft: true}\n"
WAYS = {w.name: w for w in (
    Way("one", ALL_ON_GPU, ("--in-process", "worker=1,gpu=1"), False),
    Way("spread", "", ("--in-process", "worker=1,gpu=2"), True),
    Way("local", "", LOCAL, True))}
# Where one is trained: on one GPU, or by the GPUs of two processes with the
# variables in a third.
SERVED = ("  - {match: 'kind:var', device: '/job:ps', soft: true}\n"
          "  - {match: '*', device: '/job:worker/device:GPU:0', soft: true}\n")
TRAIN_WAYS = {w.name: w for w in (
    WAYS["one"], Way("served", SERVED, LOCAL, True))}
# `near`: how far a value of the checkpoint may be from the CPU's after STEPS.
# Adam divides rounding errors by their own size where a gradient is none, as
# the keys' bias of an attention has, so they are worth a share of its rate.
Training = collections.namedtuple("Training", "name near sizes")
TRAININGS = (
    Training("mlp_train", 1e-6, ("-p", "batch=32", "-p", "hidden=16")),
    Training("logistic", 1e-6, ()),
    Training("lenet_train", 1e-5, ("-p", "batch=4")),
    Training("transformer_train", 1e-4, ("-p", "batch=4", "-p", "d=16", "-p",
                                         "ffn=24")),
    Training("rnn_char", 1e-4, ("-p", "batch=2", "-p", "hidden=16")),
    Training("lstm_lm", 1e-5, ("-p", "batch=2", "-p", "hidden=16", "-p",
                               "vocab=50", "--set",
                               "data.train.text.vocabulary.size=50")))
STEPS = 4
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


def placer(way, seed):
    return ("--placer", f"random:{seed}") if way.spread else ()


def run_gpu(weir, row, way, path, plan, seed):
    return weir("run", path, "--json", "-v", *row.feeds, *row.sizes,
                *way.cluster, *placer(way, seed), "--save-plan", plan)


def run_graph(weir, row, way, folders, seed=1):
    """Runs a graph on the CPU, and twice in the way |way|; |folders|: of the
    graphs, and for files. Gives the number of nodes on GPUs, that of values
    that crossed, and the messages; raises Failure."""
    graphs, work = folders
    path, plan = copied(row.name, graphs, work, way.rules), work + "/plan.json"
    want, _ = weir("run", path, "--json", "-q", *row.feeds, *row.sizes)
    got, words = run_gpu(weir, row, way, path, plan, seed)
    again, _ = run_gpu(weir, row, way, path, plan, seed)
    problem = difference(got, want)
    if problem is None and "W6004" in words:
        problem = "no GPU: " + words
    if problem is None and got != again:
        problem = "two runs have different bits"
    if problem is not None:
        raise Failure(f"{row.name}, {way.name}, seed {seed}: {problem}")
    return (*on_gpus(plan), words)


# ---- Training


class Trained:
    """Trainings of one graph, each into a checkpoint of |work|."""

    def __init__(self, weir, row, way, folders):
        graphs, self.work, data = folders
        self.weir, self.row, self.way = weir, row, way
        self.path = copied(row.name, graphs, self.work, way.rules)
        self.plan = os.path.join(self.work, "plan.json")
        self.common = ("--data-root", data, "--json", *row.sizes)

    def into(self, name):
        return os.path.join(self.work, name)

    def train(self, name, *more, steps=STEPS):
        return self.weir("train", self.path, *self.common, "--steps",
                         str(steps), "--checkpoint", self.into(name), *more)

    def on_gpu(self, name, *more, steps=STEPS):
        return self.train(name, *self.way.cluster, *placer(self.way, 1),
                          "--save-plan", self.plan, *more, steps=steps)

    def same(self, a, b, near=0.0):
        """Raises Failure where the checkpoints differ."""
        self.weir("checkpoint", "diff", self.into(a), self.into(b), "--atol",
                  str(near), "--rtol", str(BOUND if near else 0.0))


def loss_of(out):
    return [e["loss"] for e in map(json.loads, out.splitlines())
            if e["event"] == "end"][-1]


def train_graph(weir, row, way, folders):
    """Trains on the CPU and twice in the way |way|; |folders|: of the graphs,
    for files, and of the data. Gives as run_graph does."""
    t = Trained(weir, row, way, folders)
    want = loss_of(t.train("cpu")[0])
    out, words = t.on_gpu("gpu")
    t.on_gpu("again")
    got, problem = loss_of(out), None
    if "W6004" in out + words:
        problem = "no GPU: " + out + words
    elif not abs(got - want) <= 1e-4 * abs(want):
        problem = f"the loss is {got}, on the CPU {want}"
    if problem is not None:
        raise Failure(f"{row.name}, {way.name}: {problem}")
    t.same("gpu", "again")
    t.same("cpu", "gpu", row.near)
    return (*on_gpus(t.plan), words)
