# SPDX-License-Identifier: Apache-2.0
"""Steps of weir on the GPU beside PyTorch's: figures, no verdict."""
import json
import os
import re
import subprocess
import sys
import tempfile

import images
import run

# A row of torch_steps.py; its graph, and how weir is to run it.
BLOCKS = {"transformer_block 1": 1, "transformer_block 8": 8}
TRAININGS = {"lenet_train 256": ("lenet_train", "-p", "batch=256"),
             "mlp_train 128x1024": ("mlp_train", "-p", "hidden=1024")}
GPU = ("--in-process", "worker=1,gpu=1")
SHORT, LONG = 200, 2200


def on_gpu(place, graph, folder):
    """A copy of the graph, all of it on the GPU."""
    with open(os.path.join(place.root, "graphs", graph + ".weir.yaml"),
              encoding="utf-8") as f:
        text = re.sub(r"(?m)^placement:.*\n(?:[ -].*\n)*", "", f.read())
    text = re.sub(r"(?m)^  (eval|stop|checkpoint|epochs|schedule):.*\n", "",
                  text)
    path = os.path.join(folder, graph + ".weir.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text + "\nplacement:\n"
                "  - {match: '*', device: 'gpu:0', soft: true}\n")
    return path


def weir(place, *arguments):
    p = subprocess.run([place.program("weir"), *arguments], text=True,
                       capture_output=True, env=place.env, check=False,
                       timeout=run.STEP_SECONDS)
    if p.returncode != 0:
        raise RuntimeError(p.stderr[-400:])
    return p.stdout


def block_us(place, path, batch):
    out = weir(place, "bench", path, "-p", f"batch={batch}", "--json", *GPU,
               "-i", "x=random:seed=1")
    return json.loads(out.splitlines()[-1])["median_ns"] / 1e3


def seconds(place, path, data, steps, *arguments):
    with tempfile.TemporaryDirectory() as checkpoint:
        out = weir(place, "train", path, "--json", "--data-root", data,
                   "--steps", str(steps), "--checkpoint", checkpoint,
                   *arguments, *GPU)
    events = [json.loads(x) for x in out.splitlines() if x.startswith("{")]
    return [e["seconds"] for e in events if e["event"] == "end"][-1]


def train_us(place, path, data, *arguments):
    """The time of a step, data and all: a long training less a short one."""
    times = [seconds(place, path, data, n, *arguments) for n in (SHORT, LONG)]
    return (times[1] - times[0]) / (LONG - SHORT) * 1e6


def rows_of(place, torch):
    yield "| step, us | weir | PyTorch eager | PyTorch graph | weir / best |"
    yield "|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        images.write(folder)
        for name, row in torch.items():
            if name in BLOCKS:
                path = on_gpu(place, "transformer_block", folder)
                us = block_us(place, path, BLOCKS[name])
            else:
                graph, *arguments = TRAININGS[name]
                us = train_us(place, on_gpu(place, graph, folder), folder,
                              *arguments)
            best = min(row["eager_us"], row["graph_us"])
            yield (f"| {name} | {us:.1f} | {row['eager_us']:.1f} | "
                   f"{row['graph_us']:.1f} | {us / best:.2f} |")


def peers(place, _small):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                          "torch_steps.py")
    p = subprocess.run([sys.executable, script], text=True,
                       capture_output=True, check=False, timeout=240)
    if p.returncode != 0:
        return run.skipped(p.stderr.strip().splitlines()[-1]
                           if p.stderr.strip() else "PyTorch failed")
    try:
        text = "\n".join(rows_of(place, json.loads(p.stdout)))
    except (RuntimeError, subprocess.TimeoutExpired, KeyError) as e:
        return run.Result([], [f"peers: {e}"], [], [])
    return run.Result(["peers"], [], [], [text])
