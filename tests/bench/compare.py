#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times weir against its peers, turn by turn, and prints a table.

  compare.py --weir build/cli/weir [--peers PYTHON] [--rounds 5] [CASE ...]

PYTHON is an interpreter that has numpy, onnx, onnxruntime and torch; without
it only weir's own figures are printed.  Each figure is the median over rounds
of a burst's median; a ratio is the median of the rounds' ratios, so that a
machine that drifts does not decide.  --csv FILE keeps every round.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import graphs

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# case: (graph, weir bench options, peers, what a node or GFLOP is)
CASES = {
    "chain": ("chain", ["--no-fusion"], ["ort_chain"], 10000),
    "wide": ("wide", ["--no-fusion"], ["ort_wide"], 10000),
    "one": ("one", [], [], 1),
    "matmul64": ("matmul64", [], ["torch_matmul64", "ort_matmul64"], 0),
    "matmul256": ("matmul256", [], ["torch_matmul256", "ort_matmul256"], 0),
    "matmul1024": ("matmul1024", [], ["torch_matmul1024", "ort_matmul1024"], 0),
    "matmul2048": ("matmul2048", [], ["torch_matmul2048", "ort_matmul2048"], 0),
    "lenet1": ("lenet", ["-p", "batch=1"], ["ort_lenet1", "torch_lenet1"], 0),
    "lenet64": ("lenet", ["-p", "batch=64"], ["ort_lenet64", "torch_lenet64"],
                0),
    "encoder1": ("transformer_block", ["-p", "batch=1"], ["torch_encoder1"],
                 0),
    "encoder8": ("transformer_block", ["-p", "batch=8"], ["torch_encoder8"],
                 0),
}


class Peer:
    def __init__(self, python, case):
        self.process = subprocess.Popen(
            [python, str(HERE / "peers.py"), case], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        if self.process.stdout.readline().strip() != "READY":
            raise SystemExit(f"peer {case} did not start")

    def ask(self, text):
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def graph_path(name, folder):
    own = ROOT / "graphs" / f"{name}.weir.yaml"
    return own if own.exists() else folder / f"{name}.weir.yaml"


def weir_burst(weir, graph, options, seconds):
    command = [weir, "bench", str(graph), "--format", "json", "--time",
               f"{seconds}s", *options]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {run.stderr}")
    return json.loads(run.stdout.splitlines()[-1])


def measure(args, name, folder, rows):
    graph, options, peers, nodes = CASES[name]
    peers = [Peer(args.peers, p) for p in peers] if args.peers else []
    names = CASES[name][2]
    ours, theirs = [], [[] for _ in peers]
    for i in range(args.rounds):
        figure = weir_burst(args.weir, graph_path(graph, folder), options,
                            args.seconds)
        ours.append(figure["median_ns"])
        rows.append([name, i, "weir", ours[-1]])
        for k, peer in enumerate(peers):
            theirs[k].append(peer.ask(args.seconds))
            rows.append([name, i, names[k], theirs[k][-1]])
    for peer in peers:
        peer.close()
    median = statistics.median(ours)
    text = f"{name:<11} weir {median / 1e3:>11.2f} us"
    if nodes:
        text += f"  {median / nodes:8.1f} ns/node"
    if figure.get("flops") and not nodes:
        text += f"  {figure['flops'] / median:8.1f} GFLOP/s"
    for k in range(len(peers)):
        ratio = statistics.median(a / b for a, b in zip(ours, theirs[k]))
        text += (f"  {names[k]} {statistics.median(theirs[k]) / 1e3:.2f} us"
                 f" (ratio {ratio:.3f})")
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", default=str(ROOT / "build/cli/weir"))
    parser.add_argument("--peers", help="python with the peers installed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--csv", help="file for every round's figure")
    parser.add_argument("cases", nargs="*", default=[])
    args = parser.parse_args()
    unknown = [c for c in args.cases if c not in CASES]
    if unknown:
        sys.exit(f"unknown case {unknown[0]}; known: {', '.join(CASES)}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = graphs.write(folder)
        for name in args.cases or CASES:
            measure(args, name, folder, rows)
    if args.csv:
        with open(args.csv, "w", newline="") as out:
            csv.writer(out).writerows([["case", "round", "who", "ns"], *rows])


if __name__ == "__main__":
    main()
