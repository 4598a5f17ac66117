# SPDX-License-Identifier: Apache-2.0
"""Graphs on the GPU beside the same on the CPU: their outputs, and trainings.

A graph counts as passed only if a node of it ran on the GPU."""
import json
import os
import re
import subprocess
import tempfile
import time

import images
import run

GPU = ("--in-process", "worker=1,gpu=1")
# Differences that two orders of a sum may make in these graphs.
RTOL, ATOL = 1e-3, 1e-4
STEPS = 24

# A graph of graphs/, and what its inputs need beside their defaults.
RUNS = (("tiny_matmul",), ("regression",), ("mlp",), ("wide",), ("deep",),
        ("conv_bn",), ("embedding_classifier",), ("lstm_scan",), ("newton",),
        ("recurrent",), ("transformer_block",),
        ("mlp_train", "-i", "image=random:seed=1"),
        ("logistic", "-i", "image=random:seed=1"),
        ("lenet_train", "-i", "image=random:seed=1"),
        ("transformer_train", "-i", "image=random:seed=1"))
# A graph that is trained, and how far its loss may be from the CPU's.
TRAININGS = (("mlp_train", 0.02), ("logistic", 0.02), ("lenet_train", 0.1),
             ("transformer_train", 0.1), ("lenet", 0.02))


def weir(place, *arguments):
    """(output, words), or what failed as one text and None."""
    left = min(run.STEP_SECONDS, place.end - time.monotonic())
    try:
        p = subprocess.run([place.program("weir"), *arguments], text=True,
                           capture_output=True, env=place.env, check=False,
                           timeout=max(left, 1))
    except subprocess.TimeoutExpired as e:
        words = e.stderr.decode(errors="replace") if e.stderr else ""
        return run.end_of(None, left) + run.tail(words), None
    if p.returncode != 0:
        return run.end_of(p.returncode, left) + run.tail(p.stderr), None
    return p.stdout, p.stderr


def difference(a, b, at=""):
    """Where two values of JSON differ by more than the bounds; None: nowhere."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        pairs = [(f"{at}.{k}", a[k], b[k]) for k in a]
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = [(f"{at}[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b))]
    elif isinstance(a, float) or isinstance(b, float):
        near = a == b or abs(a - b) <= ATOL + RTOL * abs(b)
        return None if near else f"{at}: {a} on the GPU, {b} on the CPU"
    else:
        return None if a == b else f"{at}: {a} on the GPU, {b} on the CPU"
    return next(filter(None, (difference(x, y, k) for k, x, y in pairs)), None)


def nodes_on_gpu(words):
    """Of the plan that weir told of; (count, why others are not there)."""
    count = sum(int(n) for n in re.findall(r"GPU:\d+ +(\d+) nodes", words))
    missing = re.search(r"\d+ of \d+ units .*have no GPU kernel.*", words)
    return count, missing.group(0) if missing else "the placer chose the CPU"


def judged(name, problem, words):
    count, why = nodes_on_gpu(words)
    if problem is not None:
        return run.Result([], [f"{name}: {problem}"], [], [])
    if "W6004" in words:
        return run.Result([], [f"{name}: no GPU:{run.tail(words)}"], [], [])
    if count == 0:
        return run.skipped(f"{name}: no node is on the GPU: {why}")
    return run.Result([f"{name}, {count} nodes on the GPU"], [], [], [])


def run_one(place, graph, *feeds):
    path = os.path.join(place.root, "graphs", graph + ".weir.yaml")
    common = ("run", path, "--json", *feeds)
    cpu, words = weir(place, *common, "-q")
    if words is None:
        return run.Result([], [f"{graph} on the CPU: {cpu}"], [], [])
    gpu, words = weir(place, *common, *GPU, "-v")
    if words is None:
        return run.Result([], [f"{graph}: {gpu}"], [], [])
    return judged(graph, difference(json.loads(gpu), json.loads(cpu)), words)


def losses(lines):
    """The loss of the last evaluation, and that of the last step as text."""
    events = [json.loads(line) for line in lines.splitlines()
              if line.startswith("{")]
    last = [e["metrics"]["loss"] for e in events if e["event"] == "eval"][-1]
    return last, [repr(e["loss"]) for e in events if e["event"] == "end"][-1]


def train_one(place, data, graph, bound):
    """Trains on the CPU and twice on the GPU, where the bits are the same."""
    results, words = [], ""
    for where in ((), (*GPU, "-v"), (*GPU, "-v")):
        with tempfile.TemporaryDirectory() as checkpoint:
            out, words = weir(
                place, "train", os.path.join(
                    place.root, "graphs", graph + ".weir.yaml"), "--json",
                "--data-root", data, "--steps", str(STEPS), "--checkpoint",
                checkpoint, *where)
        if words is None:
            on = "the GPU" if where else "the CPU"
            return run.Result([], [f"train {graph} on {on}: {out}"], [], [])
        results.append(losses(out))
    (cpu, _), (gpu, bits), (_, again) = results
    problem = None
    if not abs(gpu - cpu) <= bound:
        problem = f"loss {gpu} on the GPU, {cpu} on the CPU"
    elif bits != again:
        problem = f"loss {bits} on the GPU, then {again}"
    return judged(f"train {graph}", problem, words)


def each(place, table, one, *before):
    results = []
    for row in table:
        if time.monotonic() > place.end:
            results.append(run.skipped(f"{row[0]}: the section's time is over"))
            continue
        r = one(place, *before, *row)
        print("  " + "; ".join(r.passed + r.failed + r.skipped), flush=True)
        results.append(r)
    return run.merge(results)


def graphs(place, _small):
    return each(place, RUNS, run_one)


def train(place, _small):
    with tempfile.TemporaryDirectory() as data:
        images.write(data)
        return each(place, TRAININGS, train_one, data)
