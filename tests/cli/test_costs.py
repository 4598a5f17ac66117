#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calibration: after it every unit of a graph has a measured entry, the file
keeps its form, and bad files are refused.

  test_costs.py WEIR SOURCE_ROOT [half|all]

A plan that is carried out (`weir trace`) is told beside its prediction.

A few graphs are measured, and all else is looked at; or every second one of the
graphs beside these few, or all graphs, are measured.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import sizes

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
# Its sizes are those of the picture that it is fed.
FED = {"lenet_photo.weir.yaml": ["-i", "photo=u8:56x40x3=0"]}
FEW = ["tiny_matmul", "embedding_classifier", "lenet_train", "lstm_scan",
       "mlp_mesh"]
failures = []


def place(*args):
    return subprocess.run([WEIR, "place", *map(str, args)], env=ENV,
                          timeout=240, capture_output=True, text=True)


def check(what, ok, p=None):
    if not ok:
        failures.append(what)
        print(f"FAIL {what}", p.stderr[:400] if p else "", sep="\n")


def form(text):
    """The file without the figures that time makes."""
    return re.sub(r"^((?:unit|step) \w+) \d+ \d+ \d+", r"\1", text, flags=re.M)


def every_unit_is_measured(graph, folder):
    costs = folder / (graph.name + ".costs")
    where = ["--cluster", "ps=1,worker=2", "--budget", "0",
             *FED.get(graph.name, [])]
    p = place(graph, "--calibrate", "--costs", costs, *where)
    if p.returncode != 0:
        return check(f"{graph.name} is calibrated", False, p)
    text = costs.read_text()
    lines = text.splitlines()
    units = [line for line in lines if line.startswith("unit ")]
    keys = [line.split(" ", 7)[1] + " " + line.split(" ", 7)[7]
            for line in units]
    check(f"{graph.name}: sorted, each once", keys == sorted(set(keys)))
    check(f"{graph.name}: head", lines[0] == "weir-costs 1" and
          any(line.startswith("machine cpu ") for line in lines))
    p = place(graph, "--costs", costs, "--json", *where)
    check(f"{graph.name}: no warning", p.returncode == 0 and p.stderr == "", p)
    nodes = json.loads(p.stdout)["nodes"]
    # The time of a collective follows from the links.
    ring = [n for n in nodes if n["op"] in COLLECTIVES]
    sources = {n["cost_source"] for n in nodes if n not in ring}
    check(f"{graph.name}: {sources}", sources <= {"measured", "given"})
    summary = place(graph, "--costs", costs, *where).stdout
    check(f"{graph.name}: summary", f" {len(ring)} estimated, " in summary and
          "costs: 0 measured" not in summary)
    return text


def one_device_has_no_ring(folder):
    """There a rank of a collective is work: no link, its measured time."""
    graph, costs = ROOT / "graphs/mlp_mesh.weir.yaml", folder / "mesh.costs"
    where = ["--cluster", "worker=1", "--budget", "0", "--costs", costs]
    p = place(graph, "--calibrate", "--json", *where)
    nodes = json.loads(p.stdout)["nodes"] if p.returncode == 0 else []
    ring = [n for n in nodes if n["op"] in COLLECTIVES]
    check("collectives on one device", ring and
          {n["cost_source"] for n in ring} == {"measured"}, p)


def files_are_read_strictly(folder):
    graph = ROOT / "graphs/tiny_matmul.weir.yaml"
    bad = folder / "bad.costs"
    bad.write_text("weir-costs 1\nunit cpu many 1 1 1 1 key\n")
    p = place(graph, "--costs", bad)
    check("a malformed file", p.returncode == 2 and "W3045" in p.stderr and
          f"{bad}:2:10" in p.stderr, p)
    p = place(graph, "--costs", folder / "none.costs")
    check("a missing file", p.returncode == 5 and "W4001" in p.stderr, p)
    other = folder / "other.costs"
    other.write_text("weir-costs 1\nmachine cpu Abacus\n"
                     "unit cpu 5 0 9 0 0 stale(f32[1]) -> f32[1]\n")
    p = place(graph, "--costs", other)
    check("another machine's file", p.returncode == 0 and
          "W3046" in p.stderr and "Abacus" in p.stderr, p)
    p = place(graph, "--calibrate", "--costs", other)
    check("it is measured anew", p.returncode == 0 and
          "stale" not in other.read_text(), p)


def graphs_share_a_file(folder):
    costs = folder / "shared.costs"
    graphs = [ROOT / f"graphs/{name}.weir.yaml" for name in FEW[:2]]
    for graph in graphs:
        place(graph, "--calibrate", "--costs", costs)
    for graph in graphs:
        p = place(graph, "--costs", costs)
        check(f"{graph.name} in a shared file", " 0 estimated" in p.stdout, p)
    before = form(costs.read_text())
    place(graphs[0], "--calibrate", "--costs", costs)
    check("measuring again keeps the form", form(costs.read_text()) == before)


def a_plan_is_carried_out(folder):
    graph = ROOT / "graphs/wide.weir.yaml"
    lanes = folder / "lanes.json"
    p = subprocess.run([WEIR, "trace", graph, "--cluster", "worker=1",
                        "--json", "-o", lanes], env=ENV, timeout=120,
                       capture_output=True, text=True)
    check("wide is traced", p.returncode == 0, p)
    if p.returncode != 0:
        return
    seen = json.loads(p.stdout)
    nodes = seen["nodes"]
    check("the step is predicted and measured",
          seen["predicted_ns"] == seen["makespan_ns"] + seen["beside_ns"] and
          seen["measured_ns"] > 0 and seen["runs"] >= 9)
    check("nodes are predicted and measured", len(nodes) > 50 and
          sum(n["measured_ns"] for n in nodes) > 0 and
          all(n["end_ns"] >= n["start_ns"] for n in nodes))
    ran = [n for n in nodes if n["start_ns"] >= 0]
    events = json.loads(lanes.read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    drawn = [e for e in events if e["ph"] == "X"]
    measured = [e for e in drawn if names[e["tid"]].startswith("measured ")]
    predicted = [e for e in drawn if names[e["tid"]].startswith("predicted ")]
    check("two lanes hold both", len(measured) == len(ran) and
          len(predicted) == len(nodes))
    check("each event tells the difference",
          all("error" in e["args"] for e in drawn))


def several_devices_are_traced(folder):
    graph = ROOT / "graphs/lenet_train.weir.yaml"
    lanes = folder / "several.json"
    p = subprocess.run([WEIR, "trace", graph, "--cluster", "ps=1,worker=2",
                        "--budget", "0", "--json", "-o", lanes], env=ENV,
                       timeout=120, capture_output=True, text=True)
    check("three devices are traced", p.returncode == 0, p)
    if p.returncode != 0:
        return
    seen = json.loads(p.stdout)
    devices = {n["device"] for n in seen["nodes"]}
    check("they have work", len(devices) > 1 and len(seen["edges"]) > 0)
    check("copies are measured", any(e["measured_ns"] > 0 and
                                     e["end_ns"] > e["start_ns"] >= 0
                                     for e in seen["edges"]))
    producer = {n["id"]: n for n in seen["nodes"]}
    check("a copy begins when its tensor is there",
          all(e["start_ns"] >= producer[e["node"]]["start_ns"]
              for e in seen["edges"] if e["start_ns"] >= 0))
    events = json.loads(lanes.read_text())["traceEvents"]
    check("lanes of copies", any("copies to" in e["args"]["name"]
                                 for e in events if e["ph"] == "M"))
    pinned = folder / "pinned.weir.yaml"
    pinned.write_text('weir: 1\nnodes:\n  w: "var([4], init=1.0) @ gpu:0"\n'
                      "  y: relu(w)\noutputs: [y]\n")
    none = dict(ENV, CUDA_VISIBLE_DEVICES="")
    p = subprocess.run([WEIR, "trace", pinned, "--cluster", "worker=1,gpu=1",
                        "--budget", "0"], env=none, timeout=120,
                       capture_output=True, text=True)
    check("a GPU is not in this process", p.returncode == 4 and
          "W3047" in p.stderr, p)


def main():
    graphs = sizes.graphs(ROOT)
    few = [ROOT / f"graphs/{name}.weir.yaml" for name in FEW]
    plain = not sys.argv[3:]
    if "half" in sys.argv[3:]:
        graphs = [g for g in graphs[::2] if g not in few]
    elif plain:
        graphs = few
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for graph in graphs:
            every_unit_is_measured(graph, folder)
        for look in (one_device_has_no_ring, files_are_read_strictly,
                     graphs_share_a_file, a_plan_is_carried_out,
                     several_devices_are_traced):
            if plain:
                look(folder)
    print(f"{len(graphs)} graphs, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
