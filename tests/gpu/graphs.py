# SPDX-License-Identifier: Apache-2.0
"""Graphs of cases.py on the GPU beside the same on the CPU.

A graph counts as passed only if a node of it ran on the GPU."""
import json
import subprocess
import tempfile
import time

import cases
import images
import run

# The commands of one section.
SECONDS = 60


def caller(place, seconds):
    """`weir` of the archive, as cases.py calls it, until the section ends."""
    end = min(place.end, time.monotonic() + seconds)

    def weir(*arguments):
        left = max(end - time.monotonic(), 1)
        try:
            p = subprocess.run([place.program("weir"), *arguments], text=True,
                               capture_output=True, env=place.env, check=False,
                               timeout=left)
        except subprocess.TimeoutExpired as e:
            words = e.stderr.decode(errors="replace") if e.stderr else ""
            raise cases.Failure(run.end_of(None, left) + run.tail(words)) \
                from None
        if p.returncode != 0:
            raise cases.Failure(run.end_of(p.returncode, left) +
                                run.tail(p.stdout + p.stderr))
        return p.stdout, p.stderr
    return weir, end


def gpu_count(weir):
    """GPUs that weir finds; `weir doctor` names them."""
    found = json.loads(weir("doctor", "--json")[0])["cuda"]
    return int(found.split(" GPU")[0].split()[-1]) if " GPU" in found else 0


def judged(name, check):
    """What |check|, of cases.py, found."""
    try:
        nodes, crossed, _ = check()
    except cases.Failure as e:
        return run.Result([], [f"{name}: {e}"], [], [])
    if nodes == 0:
        return run.skipped(f"{name}: no node is on a GPU")
    return run.Result([f"{name}, {nodes} nodes on GPUs, {crossed} values "
                       "crossed"], [], [], [])


def each(place, ways, rows, check, data=""):
    weir, end = caller(place, SECONDS)
    try:
        gpus = gpu_count(weir)
    except cases.Failure as e:
        return run.Result([], [f"weir doctor: {e}"], [], [])
    results, late = [], []
    for way in ways:
        if way.name == "spread" and gpus < 2:
            results.append(run.skipped("spread: there is one GPU"))
            continue
        for row in rows:
            name = f"{row.name}, {way.name}"
            if time.monotonic() > end:
                late.append(name)
                continue
            with tempfile.TemporaryDirectory() as work:
                folders = (place.root + "/graphs", work, data)
                r = judged(name, lambda: check(weir, row, way, folders))
            print("  " + "; ".join(r.passed + r.failed + r.skipped),
                  flush=True)
            results.append(r)
    if late:
        results.append(run.skipped(f"the section's time is over: "
                                   f"{', '.join(late)}"))
    return run.merge(results)


def run_graph(weir, row, way, folders):
    return cases.run_graph(weir, row, way, folders[:2])


def graphs(place, _small):
    return each(place, cases.WAYS.values(), cases.GRAPHS, run_graph)


def train(place, _small):
    with tempfile.TemporaryDirectory() as data:
        images.write(data)
        return each(place, cases.TRAIN_WAYS.values(), cases.TRAININGS,
                    cases.train_graph, data)
