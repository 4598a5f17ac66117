# SPDX-License-Identifier: Apache-2.0
"""Graphs of cases.py on the GPU beside the same on the CPU.

A graph counts as passed only if a node of it ran on the GPU."""
import concurrent.futures
import json
import os
import subprocess
import tempfile
import time

import cases
import images
import run
import texts

SECONDS = 60  # of a section
AT_ONCE = min(4, os.cpu_count())


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


def left_out(place, way, gpus):
    """Why |way| cannot be tried here; None: it can."""
    if way.name == "spread" and gpus < 2:
        return "it needs two GPUs"
    if "--local" in way.cluster and not os.path.exists(
            place.program("libweir_grpc.so")):
        return "libweir_grpc.so is not in this archive"
    return None


def one(job):
    """A graph in one way, in a folder of its own."""
    check, weir, row, way, root, data, end = job
    name = f"{row.name}, {way.name}"
    if time.monotonic() > end:
        return run.skipped(f"{name}: the section's time is over")
    with tempfile.TemporaryDirectory() as work:
        r = judged(name, lambda: check(weir, row, way,
                                       (root + "/graphs", work, data)))
    print("  " + "; ".join(r.passed + r.failed + r.skipped), flush=True)
    return r


def each(place, ways, rows, check, data=""):
    """Several at once: most of a command is the start of CUDA."""
    weir, end = caller(place, SECONDS)
    try:
        gpus = gpu_count(weir)
    except cases.Failure as e:
        return run.Result([], [f"weir doctor: {e}"], [], [])
    results, jobs = [], []
    for way in ways:
        why = left_out(place, way, gpus)
        if why is not None:
            results.append(run.skipped(f"{way.name}: {why}"))
            continue
        jobs += [(check, weir, row, way, place.root, data, end) for row in rows]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return run.merge([*results, *pool.map(one, jobs)])


def run_graph(weir, row, way, folders):
    return cases.run_graph(weir, row, way, folders[:2])


def graphs(place, _small):
    return each(place, cases.WAYS.values(), cases.GRAPHS, run_graph)


def train(place, _small):
    with tempfile.TemporaryDirectory() as data:
        images.write(data)
        texts.write(data)
        return each(place, cases.TRAIN_WAYS.values(), cases.TRAININGS,
                    cases.train_graph, data)
