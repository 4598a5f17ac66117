#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files that a training writes for people: CSV, JSON lines and event files, which
TensorBoard itself reads back where it is installed.

  test_summary.py WEIR
"""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

WEIR = os.path.abspath(sys.argv[1])
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
GRAPH = """weir: 1
dims: [n]
inputs: {x: 'f32[n]', y: 'f32[n]'}
nodes:
  a: var([], init=zeros())
  w: var([3], init=ones())
  line: mul(mul(x, a), mean(w))
  loss: mean(square(sub(line, y)))
outputs: [line]
data:
  train: {source: memory, values: {x: [1, 2, 3, 4], y: [2, 4, 6, 8]}, batch: 2}
train:
  minimize: loss
  optimizer: sgd(lr=0.01)
  steps: 40
  eval: {data: train, every: 20, metrics: [loss]}
  summary: {dir: runs, every: 10, scalars: [loss, a], histograms: ["kind:var"],
            graph: true, csv: s.csv, jsonl: s.jsonl}
"""


def train(folder, steps):
    p = subprocess.run([WEIR, "train", "g.weir.yaml", "--checkpoint", "c",
                        "--steps", str(steps), "--json"], cwd=folder, env=ENV,
                       capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    return [json.loads(line) for line in p.stdout.splitlines()]


def check_rows(runs, events):
    rows = list(csv.DictReader((runs / "s.csv").open()))
    lines = [json.loads(x) for x in (runs / "s.jsonl").open()]
    assert len(rows) == len(lines) == 6, (rows, lines)
    steps = [r for r in rows if r["loss"]]
    assert [int(r["step"]) for r in steps] == [10, 20, 30, 40], rows
    evals = [r for r in rows if r["eval/loss"]]
    assert [int(r["step"]) for r in evals] == [20, 40], rows
    told = [e["metrics"]["loss"] for e in events if e["event"] == "eval"]
    for row, value in zip(evals, told):
        assert abs(float(row["eval/loss"]) - value) < 1e-6, (row, value)
    for row, line in zip(rows, lines):
        assert int(row["step"]) == line["step"]
        if row["a"]:
            assert abs(float(row["a"]) - line["a"]) < 1e-6
    assert float(steps[-1]["loss"]) < float(steps[0]["loss"])


def check_tensorboard(runs):
    try:
        from tensorboard.backend.event_processing import event_accumulator
    except ImportError:
        other = os.environ.get("WEIR_PEERS_PYTHON")
        if not other or not os.path.exists(other):
            return "tensorboard is not here"
        code = ("import sys; sys.argv=['x','-']; "
                "from tensorboard.backend.event_processing import "
                "event_accumulator as e; a=e.EventAccumulator(sys.stdin.readline"
                "().strip()); a.Reload(); t=a.Tags(); print(t); "
                "assert 'loss' in str(t) and 'eval/loss' in str(t)")
        subprocess.run([other, "-c", code], input=str(runs) + "\n", text=True,
                       check=True, timeout=120, stdout=subprocess.DEVNULL)
        return "read by another Python"
    acc = event_accumulator.EventAccumulator(str(runs))
    acc.Reload()
    tags = acc.Tags()
    assert tags["graph"], tags
    for name in ("loss", "a", "learning_rate", "eval/loss"):
        assert name in str(tags), (name, tags)
    for name in ("a", "w"):
        assert name in str(tags["histograms"]) + str(tags["tensors"]), tags
    return "read by tensorboard"


def main():
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        (folder / "g.weir.yaml").write_text(GRAPH)
        events = train(folder, 40)
        runs = folder / "c" / "runs"
        check_rows(runs, events)
        assert len(list(runs.glob("events.out.tfevents.*"))) == 1
        print(check_tensorboard(runs))
        # A run that goes on leaves the files of the first alone.
        before = (runs / "s.csv").read_bytes()
        train(folder, 60)
        assert (runs / "s.csv").read_bytes() == before
        more = list(csv.DictReader((runs / "s.1.csv").open()))
        assert [int(r["step"]) for r in more] == [50, 60, 60], more
    return 0


sys.exit(main())
