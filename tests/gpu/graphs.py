# SPDX-License-Identifier: Apache-2.0
"""Graphs on the GPU beside the same on the CPU: their outputs, and trainings.

A graph counts as passed only if a node of it ran on the GPU."""
import json
import os
import subprocess
import tempfile
import time
import traceback

import images
import run

# On the GPU is what has a kernel there, however small it is.
GPU = ("--in-process", "worker=1,gpu=1", "--set",
       "placement=[{match: '*', prefer: [gpu, cpu]}]")
# Differences that two orders of a sum may make in these graphs.
RTOL, ATOL = 1e-3, 1e-4
STEPS, SMALL_STEPS = 32, 4  # of the stand-in, which is slow

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


def judged(name, problem, words, plan):
    """|plan|: the file that weir wrote it to."""
    with open(plan, encoding="utf-8") as f:
        nodes = json.load(f)["nodes"]
    there = sum("GPU" in n["device"] for n in nodes)
    if problem is None and "W6004" in words:
        problem = "no GPU:" + run.tail(words)
    if problem is not None:
        return run.failure(f"{name}: {problem}")
    if there == 0:
        return run.skipped(f"{name}: no node of it has a kernel for GPUs")
    return run.passed(f"{name}, {there} of {len(nodes)} nodes on the GPU")


def run_one(place, folder, _small, graph, *feeds):
    path = os.path.join(place.root, "graphs", graph + ".weir.yaml")
    common = ("run", path, "--json", *feeds)
    plan = os.path.join(folder, "plan.json")
    cpu, words = weir(place, *common)
    if words is None:
        return run.failure(f"{graph} on the CPU: {cpu}")
    gpu, words = weir(place, *common, *GPU, "--save-plan", plan)
    if words is None:
        return run.failure(f"{graph} on the GPU: {gpu}")
    return judged(graph, difference(json.loads(gpu), json.loads(cpu)), words,
                  plan)


def losses(lines):
    """The last loss of all, and that of the last step as text."""
    events = [json.loads(line) for line in lines.splitlines()
              if line.startswith("{")]
    end = [e["loss"] for e in events if e["event"] == "end"][-1]
    evals = [e["metrics"]["loss"] for e in events if e["event"] == "eval"]
    return (evals or [end])[-1], repr(end)


def train_one(place, folder, small, graph, bound):
    """Trains on the CPU and twice on the GPU, where the bits are the same."""
    results, words = [], ""
    plan = os.path.join(folder, "plan.json")
    steps = str(SMALL_STEPS if small else STEPS)
    for where in ((), GPU, GPU):
        save = ("--save-plan", plan) if where else ()
        with tempfile.TemporaryDirectory() as checkpoint:
            out, words = weir(
                place, "train", os.path.join(
                    place.root, "graphs", graph + ".weir.yaml"), "--json",
                "--data-root", folder, "--steps", steps, "--checkpoint",
                checkpoint, *where, *save)
        if words is None:
            on = "the GPU" if where else "the CPU"
            return run.failure(f"{graph} on {on}: {out}")
        results.append(losses(out))
    (cpu, _), (gpu, bits), (_, again) = results
    problem = None
    if not abs(gpu - cpu) <= bound:
        problem = f"loss {gpu} on the GPU, {cpu} on the CPU"
    elif bits != again:
        problem = f"loss {bits} on the GPU, then {again}"
    return judged(graph, problem, words, plan)


def each(place, table, one, small):
    results = []
    with tempfile.TemporaryDirectory() as folder:
        images.write(folder)
        for row in table:
            try:
                r = one(place, folder, small, *row)
            except Exception:  # what weir wrote makes no sense
                r = run.failure(f"{row[0]}: {traceback.format_exc()}")
            if time.monotonic() > place.end:
                r = run.skipped(f"{row[0]}: the section's time is over")
            print("  " + "; ".join(r.passed + r.failed + r.skipped), flush=True)
            results.append(r)
    return run.merge(results)


def graphs(place, small):
    return each(place, RUNS, run_one, small)


def train(place, small):
    return each(place, TRAININGS, train_one, small)
