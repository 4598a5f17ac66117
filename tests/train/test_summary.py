#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files that a training writes for people: CSV, JSON lines and event files, read
by a small reader of our own, and by TensorBoard where it is installed.

  test_summary.py WEIR
"""
import csv
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from wire_fields import fields  # noqa: E402

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


def train(folder, steps, *more, graph="g.weir.yaml", checkpoint="c"):
    p = subprocess.run([WEIR, "train", graph, "--checkpoint", checkpoint,
                        "--steps", str(steps), "--json", *more], cwd=folder, env=ENV,
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


# ---- Event files: records of Event messages in protobuf's wire form

def read_events(folder):
    """Of the folder's one file: {tag: [(step, number)]}, {tag: [(step, count,
    least, most)]} of histograms, names and ops of the graph's nodes."""
    files = list(folder.glob("events.out.tfevents.*"))
    assert len(files) == 1, files
    data = files[0].read_bytes()
    scalars, histograms, nodes, at = {}, {}, {}, 0
    while at < len(data):
        size, = struct.unpack_from("<Q", data, at)
        event = dict(fields(data[at + 12:at + 12 + size]))
        at += 12 + size + 4
        step = event.get(2, 0)
        if 4 in event:
            for number, node in fields(event[4]):
                if number == 1:
                    f = dict(fields(node))
                    nodes[f[1].decode()] = f[2].decode()
        for number, value in fields(event.get(5, b"")):
            v = dict(fields(value))
            tag = v[1].decode()
            if 2 in v:
                number, = struct.unpack("<f", v[2])
                scalars.setdefault(tag, []).append((step, number))
            if 5 in v:
                h = dict(fields(v[5]))
                least, most, count = (struct.unpack("<d", h[i])[0]
                                      for i in (1, 2, 3))
                histograms.setdefault(tag, []).append((step, count, least,
                                                       most))
    return scalars, histograms, nodes


def check_defaults(folder):
    """--events alone, without `summary:`: all that a user wants to see."""
    graph = GRAPH[:GRAPH.index("  summary:")].replace(
        "metrics: [loss]", "metrics: [loss, err]").replace(
        "  loss: mean", "  err: mean(abs(line - y))\n  loss: mean")
    (folder / "plain.weir.yaml").write_text(graph)
    events = train(folder, 1200, "--events", "ev", graph="plain.weir.yaml",
                   checkpoint="plain")
    assert sorted(p.name for p in (folder / "ev").iterdir()) == ["eval", "train"]
    scalars, histograms, nodes = read_events(folder / "ev/train")
    assert set(scalars) == {"loss", "err", "learning_rate",
                            "examples_per_second"}, scalars
    for tag, points in scalars.items():
        assert [s for s, _ in points] == [100 * i for i in range(1, 13)], tag
    assert all(abs(v - 0.01) < 1e-6 for _, v in scalars["learning_rate"])
    assert all(v > 0 for _, v in scalars["examples_per_second"])
    told = {e["step"]: e["loss"] for e in events if e["event"] == "step"}
    for step, loss in scalars["loss"]:
        assert abs(told[step] - loss) <= 1e-6 * max(1, loss), (step, loss)
    assert set(histograms) == {"a", "w"}, histograms
    assert [h[:2] for h in histograms["w"]] == [(100, 3), (1100, 3)]
    assert nodes["w"] == "var" and nodes["line"] == "mul", nodes
    scalars, histograms, nodes = read_events(folder / "ev/eval")
    assert set(scalars) == {"loss", "err"} and not histograms and not nodes
    told = [(e["step"], e["metrics"]["err"]) for e in events
            if e["event"] == "eval"]
    assert len(told) == len(scalars["err"]) == 60
    for (step, value), (at, err) in zip(told, scalars["err"]):
        assert step == at and abs(value - err) <= 1e-6 * max(1, abs(value))
    # A key that is given is all that is written.
    (folder / "few.weir.yaml").write_text(
        graph + "  summary: {every: 10, scalars: [a], histograms: [], "
        "graph: false}\n")
    train(folder, 20, "--events", "few", graph="few.weir.yaml",
          checkpoint="few")
    scalars, histograms, nodes = read_events(folder / "few/train")
    assert set(scalars) == {"a", "learning_rate", "examples_per_second"}
    assert not histograms and not nodes


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
                "assert 'loss' in str(t)")
        for folder in ("train", "eval"):
            subprocess.run([other, "-c", code], input=f"{runs / folder}\n",
                           text=True, check=True, timeout=120,
                           stdout=subprocess.DEVNULL)
        return "read by another Python"
    acc = event_accumulator.EventAccumulator(str(runs / "train"))
    acc.Reload()
    tags = acc.Tags()
    assert tags["graph"], tags
    for name in ("loss", "a", "learning_rate"):
        assert name in str(tags), (name, tags)
    acc_eval = event_accumulator.EventAccumulator(str(runs / "eval"))
    acc_eval.Reload()
    assert "loss" in str(acc_eval.Tags())
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
        scalars, histograms, nodes = read_events(runs / "train")
        assert [s for s, _ in scalars["loss"]] == [10, 20, 30, 40]
        assert set(scalars) == {"loss", "a", "learning_rate",
                                "examples_per_second"}
        assert set(histograms) == {"a", "w"} and "loss" in nodes
        assert [s for s, _, _, _ in histograms["a"]] == [10, 20, 30, 40]
        scalars, _, _ = read_events(runs / "eval")
        assert [s for s, _ in scalars["loss"]] == [20, 40], scalars
        check_defaults(folder)
        print(check_tensorboard(runs))
        # A run that goes on leaves the files of the first alone.
        before = (runs / "s.csv").read_bytes()
        train(folder, 60)
        assert (runs / "s.csv").read_bytes() == before
        more = list(csv.DictReader((runs / "s.1.csv").open()))
        assert [int(r["step"]) for r in more] == [50, 60, 60], more
    return 0


sys.exit(main())
