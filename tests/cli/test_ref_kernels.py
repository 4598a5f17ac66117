#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reference kernels that make more than 2 % of a graph in graphs/, and nodes
whose profile lacks a kernel, a reason or a share of the machine's peak.

  test_ref_kernels.py WEIR SOURCE_ROOT [--list]

Shares are of the modelled work, operations plus bytes of each node (ops/cost.h),
so the verdict is the same on any machine. A reference kernel's work counts
SLOWER times: it goes element by element. ref_kernels.txt names those that are
left, with the reason; a line that is of no use fails too. Steps of training are
looked at where their data is there. --list prints all, with their shares of the
time measured here beside.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

WEIR = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
LEAST, SLOWER = 0.02, 10
TRAIN = "+train"


def allowed(text):
    """{(graph, kernel): reason} of the lines; a line without a reason fails."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        graph, kernel, reason = (line.split(None, 2) + ["", ""])[:3]
        if not reason or (graph, kernel) in found:
            raise SystemExit(f"ref_kernels.txt:{number}: GRAPH KERNEL REASON, "
                             "once each")
        found[graph, kernel] = reason
    return found


def profile_of(path):
    p = subprocess.run([WEIR, "bench", str(path), "--runs", "1", "--warmup",
                        "0", "-t", "1", "--json", "--profile"], env=CLEAN,
                       capture_output=True, timeout=120)
    if p.returncode != 0:
        raise SystemExit(f"{path}: {p.stderr.decode()}")
    return json.loads(p.stdout)["profile"]


def train_profile_of(path):
    """That of training steps; None where the graph or the machine lacks what
    it takes: a train section, data."""
    with tempfile.TemporaryDirectory() as folder:
        p = subprocess.run([WEIR, "train", str(path), "--steps", "4", "-t", "1",
                            "--json", "--profile", "--out", folder], env=CLEAN,
                           capture_output=True, timeout=120)
    if p.returncode in (3, 5):
        return None
    if p.returncode != 0:
        raise SystemExit(f"{path}: {p.stderr.decode()}")
    last = json.loads(p.stdout.splitlines()[-1])
    return last["profile"] if last["profile"]["steps"] > 0 else None


def ref_kernels(profile):
    """{kernel: (share of the work, share of the time)} of ref's."""
    work = {n["id"]: (n["flops"] + n["bytes"]) * n["calls"] *
            (SLOWER if n["kernel"].startswith("ref.") else 1)
            for n in profile["nodes"]}
    # A loop's own figures are those of its bodies, which have rows.
    loops = {n["in"] for n in profile["nodes"] if "in" in n}
    whole = sum(w for i, w in work.items() if i not in loops) or 1
    found = {}
    for n in profile["nodes"]:
        if n["kernel"].startswith("ref."):
            was = found.get(n["kernel"], (0, 0))
            found[n["kernel"]] = (was[0] + work[n["id"]] / whole,
                                  was[1] + n["share"])
    return found


def unnamed(graph, profile):
    """Nodes of which a profile does not say what it is to say."""
    return [f"{graph}: {n['node']} has no kernel, reason or share of peak"
            for n in profile["nodes"]
            if not n["kernel"] or not n["reason"] or
            (n["kernel"].startswith(("cpu.", "ref.")) and n["time_ns"] > 0 and
             "peak_share" not in n)]


def judge(found, known):
    """The lines that say what is wrong."""
    lines = [f"{graph}: {kernel} makes {100 * share:.1f} % of the work: give it "
             "a fast kernel, or a line in tests/cli/ref_kernels.txt"
             for (graph, kernel), share in sorted(found.items())
             if share > LEAST and (graph, kernel) not in known]
    return lines + [f"{graph}: {kernel} is in tests/cli/ref_kernels.txt, and "
                    "makes no more than 2 % of the work: remove the line"
                    for graph, kernel in sorted(known)
                    if found.get((graph, kernel), 0) <= LEAST]


def check_judge():
    """What would be wrong is found."""
    found = {("a", "ref.x"): 0.5, ("a", "ref.y"): 0.01}
    assert judge(found, {("a", "ref.x"): "why"}) == []
    assert len(judge(found, {})) == 1
    node = {"node": "n", "kernel": "cpu.y", "reason": "", "time_ns": 1,
            "peak_share": 1}
    assert len(unnamed("a", {"nodes": [node]})) == 1
    assert len(judge(found, {("a", "ref.x"): "w", ("a", "ref.y"): "w"})) == 1
    assert len(judge(found, {("a", "ref.x"): "w", ("b", "ref.x"): "w"})) == 1
    nodes = [{"id": 0, "kernel": "loop", "flops": 99, "bytes": 9, "calls": 1,
              "share": 0},
             {"id": 1, "in": 0, "kernel": "ref.x", "flops": 2, "bytes": 1,
              "calls": 3, "share": .1},
             {"id": 2, "in": 0, "kernel": "cpu.y", "flops": 9, "bytes": 0,
              "calls": 3, "share": .2}]
    assert ref_kernels({"nodes": nodes}) == {"ref.x": (90 / 117, .1)}


def main():
    check_judge()
    found, looked, lines = {}, set(), []
    for path in sorted((ROOT / "graphs").glob("*.weir.yaml")):
        name = path.name.split(".")[0]
        profiles = {name: profile_of(path)}
        if "\ntrain:" in path.read_text():
            profiles[name + TRAIN] = train_profile_of(path)
        for graph, profile in profiles.items():
            if profile is None:
                continue
            looked.add(graph)
            lines += unnamed(graph, profile)
            for kernel, (work, time) in ref_kernels(profile).items():
                found[graph, kernel] = work
                if "--list" in sys.argv:
                    print(f"{graph:24} {kernel:24} {100 * work:5.1f} % of the "
                          f"work {100 * time:5.1f} % of the time")
    known = allowed((ROOT / "tests/cli/ref_kernels.txt").read_text())
    lines += judge(found, {k: v for k, v in known.items()
                           if k[0] in looked or not k[0].endswith(TRAIN)})
    print("\n".join(lines))
    return 1 if lines else 0


sys.exit(main())
