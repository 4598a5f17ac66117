#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Periods of weir's pipelines beside those of dnn-partitioning's own programs.

  dnn.py --data THROUGHPUT_INPUTS [--experts FOLDER] [--weir build/cli/weir]
         [--csv FILE]

THROUGHPUT_INPUTS is the folder of that name of msr-fiddle/dnn-partitioning, of
which the layer graphs are taken; FOLDER its human-experts.  The period of
weir's plan and of an expert's split are computed here from the instance file
alone, by the origin's definition: an accelerator's load is its nodes' time, and
the cost of every node that has an edge into it or out of it, once; a
processor's is its nodes' time.  Colocation, memory and numbers of devices are
checked.  The results of the origin's programs (its DP over contiguous splits and
its local search with 10 restarts) were measured with them and stand below.
"""
import argparse
import csv
import json
import pathlib
import resource
import subprocess
import sys

# ms: DP (of the linearised graph where the exact one took over 50 s), local
# search (None: over 50 s), all on one accelerator.
ORIGIN = {"bert24_inference": (17.79, 17.78, 92.41),
          "bert24_training": (41.75, 39.94, 217.8),
          "gnmt_inference": (32.91, 31.78, 182.6),
          "gnmt_training": (107, 90.95, 520.5),
          "inceptionv3_inference": (51.55, None, 311),
          "inceptionv3_training": (123.9, None, 710.7),
          "resnet50_inference": (33.77, 35.89, 201.4),
          "resnet50_training": (78.63, 81.6, 462.4)}


def period(case, place):
    """Largest load of {id: device}; devices below maxCPUs are processors."""
    cpus, load, size, colors = case["maxCPUs"], {}, {}, {}
    for n in case["nodes"]:
        d = place[n["id"]]
        load[d] = load.get(d, 0) + n["cpuLatency" if d < cpus else
                                     "fpgaLatency"]
        size[d] = size.get(d, 0) + n["size"]
        assert d < cpus or n["supportedOnFpga"], n
        assert colors.setdefault(n["colorClass"], d) == d, n
    for d in load:
        assert d < cpus + case["maxFPGAs"], d
        assert d < cpus or size[d] <= case["maxSizePerFPGA"], (d, size[d])
    cost, reach = {}, {}
    for e in case["edges"]:
        source, to = place[e["sourceId"]], place[e["destId"]]
        cost[e["sourceId"]] = e["cost"]
        if source != to:
            reach.setdefault(e["sourceId"], {source}).add(to)
    for node, devices in reach.items():
        for d in devices:
            if d >= cpus:
                load[d] += cost[node]
    return max(load.values())


def expert(args, name, case):
    path = pathlib.Path(args.experts or "") / f"{name}_expert.json"
    if not args.experts or not path.exists():
        return None
    split, place = json.loads(path.read_text()), {}
    for k, part in enumerate(split["cpus"]):
        place.update({n: k for n in part["nodes"]})
    for k, part in enumerate(split["fpgas"]):
        place.update({n: case["maxCPUs"] + k for n in part["nodes"]})
    color = {n["colorClass"]: place[n["id"]] for n in case["nodes"]
             if n["id"] in place}
    for n in case["nodes"]:
        place.setdefault(n["id"], color[n["colorClass"]])
    return period(case, place)


def cpu_seconds():
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def ours(args, path, case):
    began = cpu_seconds()
    p = subprocess.run([args.weir, "place", str(path), "--objective",
                        "throughput", "--json"], capture_output=True, text=True)
    seconds = cpu_seconds() - began
    if p.returncode != 0:
        sys.exit(p.stderr)
    plan = json.loads(p.stdout)
    device = {d["name"]: k for k, d in enumerate(plan["devices"])}
    place = {int(n["name"]): device[n["device"]] for n in plan["nodes"]}
    ms = period(case, place)
    told = plan["objectives"]["period_ns"] / 1e6
    assert abs(ms - told) < 1e-3, (ms, told)  # rounding to nanoseconds
    return ms, plan["objectives"]["period_bound_ns"] / 1e6, seconds


def text(ms):
    return "" if ms is None else f"{ms:.4g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--experts")
    parser.add_argument("--weir", default="build/cli/weir")
    parser.add_argument("--csv")
    args = parser.parse_args()
    out = open(args.csv, "w", newline="") if args.csv else sys.stdout
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["case", "nodes", "weir_ms", "bound_ms", "cpu_seconds", "dp_ms",
                     "local_search_ms", "expert_ms", "one_device_ms",
                     "weir_by_best"])
    for name, (dp, local, one) in ORIGIN.items():
        path = next(pathlib.Path(args.data).rglob(f"{name}.json"))
        case = json.loads(path.read_text())
        ms, bound, seconds = ours(args, path, case)
        by_expert = expert(args, name, case)
        best = min(x for x in (dp, local, by_expert) if x is not None)
        writer.writerow([name, len(case["nodes"]), f"{ms:.5g}", f"{bound:.5g}",
                         f"{seconds:.3f}", text(dp), text(local),
                         text(by_expert), text(one), f"{ms / best:.4f}"])


if __name__ == "__main__":
    main()
