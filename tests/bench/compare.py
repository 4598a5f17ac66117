#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times weir against its peers, turn by turn, and prints a table.

  compare.py [--weir build/cli/weir] [--bare build/tests/bench/bare_sgemm]
             [--peers PYTHON] [--rounds 5] [--threads N] [--isa SET] [CASE ...]

PYTHON is an interpreter that has numpy, onnx, onnxruntime and torch; without
it only weir's own figures are printed.  Each figure is the median over rounds
of a burst's median; a ratio is the median of the rounds' ratios, so that a
machine that drifts does not decide.  --csv FILE keeps every round.  --isa avx2
caps weir, bare oneDNN and PyTorch; ONNX Runtime knows no cap, so its cases say
nothing then, except on a machine that has no more.
"""
import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import graphs

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# case: (graph, weir bench options, peers, nodes or GFLOP)
CASES = {
    "chain": ("chain", ["--no-fusion"], ["ort_chain"], 10000),
    "wide": ("wide", ["--no-fusion"], ["ort_wide"], 10000),
    "one": ("one", [], [], 1),
    "matmul64": ("matmul64", [], ["bare_sgemm64", "torch_matmul64"], 0),
    "matmul256": ("matmul256", [], ["bare_sgemm256", "torch_matmul256"], 0),
    "matmul1024": ("matmul1024", [], ["bare_sgemm1024", "torch_matmul1024"], 0),
    "matmul2048": ("matmul2048", [], ["bare_sgemm2048", "torch_matmul2048"], 0),
    "lenet1": ("lenet", ["-p", "batch=1"], ["ort_lenet1", "torch_lenet1"], 0),
    "lenet64": ("lenet", ["-p", "batch=64"], ["ort_lenet64", "torch_lenet64"],
                0),
    "encoder1": ("transformer_block", ["-p", "batch=1"], ["torch_encoder1"],
                 0),
    "encoder8": ("transformer_block", ["-p", "batch=8"], ["torch_encoder8"],
                 0),
    **{f"attention{n}": (f"attention{n}", [], [f"torch_attention{n}"], 0)
       for n in (128, 512, 1024, 4096)},
    **{f"attention_grad{n}": (f"attention_grad{n}", [],
                              [f"torch_attention_grad{n}"], 0)
       for n in (128, 512, 1024, 4096)},
    # Steps of training: bench_train instead of `weir bench`.
    "lenet_train64": ("train lenet 64", [], ["torch_lenet_train64"], 0),
    "lenet_train256": ("train lenet 256", [], ["torch_lenet_train256"], 0),
    "mlp_train128": ("train mlp 128", [], ["torch_mlp_train128"], 0),
    "lm_train": ("lm", [], ["torch_lm_train"], 0),
}
# Run when asked for: `conv` is all of them.
CONV_CASES = {
    name: (name, [], [f"torch_{name}", f"torch_last_{name}"], 0)
    for name in (graphs.conv_name(s, b) for b in (1, 8) for s in graphs.CONVS)}

for _name in ("resnet50", "mobilenet_v3", "bert_base", "gpt2_small"):
    for _b in (1, 8):
        CASES[f"{_name}{_b}"] = (
            _name, ["-p", f"batch={_b}"],
            [f"ort_{_name}{_b}", f"torch_{_name}{_b}"], 0)
for _name in ("resnet50", "bert_base"):
    CASES[f"{_name}_train8"] = (f"train {_name} 8", [],
                                [f"torch_{_name}_train8"], 0)


def environment(args):
    """That of weir and the peers: oneDNN 2 and 3, ATen and MKL capped alike."""
    made = dict(os.environ)
    if args.isa:
        made.update(WEIR_ISA=args.isa, ATEN_CPU_CAPABILITY=args.isa)
        made.update(dict.fromkeys(
            ("DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA",
             "MKL_ENABLE_INSTRUCTIONS"), args.isa.upper()))
    if args.threads:
        made["OMP_NUM_THREADS"] = str(args.threads)
    return made


class Peer:
    """A process that times one case whenever it is asked."""

    def __init__(self, args, case):
        command = [args.peers, str(HERE / "peers.py"), case]
        if args.threads:
            command.append(str(args.threads))
        if case.startswith("train "):
            command = [args.train, *case.split()[1:], "--serve"]
            if args.threads:
                command[3:3] = ["--threads", str(args.threads)]
        if case == "lm":
            command = [args.lm, "--serve"]
            if args.threads:
                command[1:1] = ["--threads", str(args.threads)]
        if case.startswith("bare_sgemm"):
            command = [args.bare, case[len("bare_sgemm"):]]
        self.process = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT,
            env=environment(args))
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
    made = folder / f"{name}.weir.yaml"
    return made if made.exists() else ROOT / "graphs" / f"{name}.weir.yaml"


def weir_burst(args, graph, options):
    command = [args.weir, "bench", str(graph), "--format", "json", "--time",
               f"{args.seconds}s", *options]
    run = subprocess.run(command, capture_output=True, text=True,
                         env=environment(args))
    if run.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {run.stderr}")
    return json.loads(run.stdout.splitlines()[-1])


def measure(args, name, folder, rows):
    graph, options, peers, nodes = {**CASES, **CONV_CASES}[name]
    if args.threads:
        options = [*options, "--threads", str(args.threads)]
    names = [p for p in peers
             if (args.bare if p.startswith("bare") else args.peers)]
    peers = [Peer(args, p) for p in names]
    own = (Peer(args, graph) if graph.startswith("train ") or graph == "lm"
           else None)
    ours, theirs = [], [[] for _ in peers]
    for i in range(args.rounds):
        figure = ({"median_ns": own.ask(args.seconds)} if own else
                  weir_burst(args, graph_path(graph, folder), options))
        ours.append(figure["median_ns"])
        rows.append([name, i, "weir", ours[-1]])
        for k, peer in enumerate(peers):
            theirs[k].append(peer.ask(args.seconds))
            rows.append([name, i, names[k], theirs[k][-1]])
    for peer in peers + ([own] if own else []):
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


def wall_and_memory(command):
    """Seconds and peak bytes of one whole process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def whole_processes(args, folder, rows):
    """Times of whole commands: load and check, a cold run; and memory."""
    lenet = ROOT / "graphs/lenet.weir.yaml"
    commands = {
        "check 100,000 nodes": ["check", str(folder / "load100k.weir.yaml")],
        "cold run, tiny graph": ["run",
                                 str(ROOT / "graphs/tiny_matmul.weir.yaml")],
        "bench lenet, batch 64": ["bench", str(lenet), "--time", "0.2s"],
    }
    for name, command in commands.items():
        runs = [wall_and_memory([args.weir, *command])
                for _ in range(args.rounds)]
        rows += [[name, i, "weir", int(t * 1e9)]
                 for i, (t, _) in enumerate(runs)]
        median = statistics.median(t for t, _ in runs)
        peak = max(m for _, m in runs)
        print(f"{name:<22} weir {median * 1e3:8.1f} ms"
              f"  peak {peak / 2**20:7.1f} MiB", flush=True)
    if args.peers:
        peer = Peer(args, "ort_lenet64")
        print(f"{'lenet, batch 64':<22} ort_lenet64 peak "
              f"{peer.ask('memory') / 2**20:.1f} MiB (with its Python)")
        peer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", default=str(ROOT / "build/cli/weir"))
    parser.add_argument("--train",
                        default=str(ROOT / "build/tests/bench/bench_train"))
    parser.add_argument("--lm",
                        default=str(ROOT / "build/tests/bench/bench_lm"))
    parser.add_argument("--peers", help="python with the peers installed")
    parser.add_argument("--bare", help="tests/bench/bare_sgemm of a build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int,
                        help="of weir and all peers")
    parser.add_argument("--isa", choices=("avx2",),
                        help="cap the instruction set of weir and the peers")
    parser.add_argument("--csv", help="file for every round's figure")
    parser.add_argument("cases", nargs="*", default=[])
    args = parser.parse_args()
    args.cases = [c for name in args.cases
                  for c in (CONV_CASES if name == "conv" else [name])]
    unknown = [c for c in args.cases if c not in {**CASES, **CONV_CASES}]
    if unknown:
        sys.exit(f"unknown case {unknown[0]}; known: {', '.join(CASES)}, "
                 f"conv (all of {', '.join(CONV_CASES)})")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = graphs.write(folder)
        # Training steps need bench_train, which is built on demand.
        known = [c for c in CASES if not CASES[c][0].startswith("train ") or
                 pathlib.Path(args.train).exists()]
        for name in args.cases or known:
            measure(args, name, folder, rows)
        if not args.cases:
            whole_processes(args, folder, rows)
    if args.csv:
        with open(args.csv, "w", newline="") as out:
            csv.writer(out).writerows([["case", "round", "who", "ns"], *rows])


if __name__ == "__main__":
    main()
