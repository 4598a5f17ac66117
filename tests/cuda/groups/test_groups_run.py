# SPDX-License-Identifier: Apache-2.0
"""test_groups_run.py WEIR TESTS: graphs whose nodes are on a GPU, the
stand-in's in the folder TESTS/standin, have the CPU's values within rounding,
and the trace names the group kernels."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

weir, tests = sys.argv[1:3]
source = pathlib.Path(os.environ["WEIR_SOURCE_ROOT"])
GRAPHS = [
    ("mlp", {"batch": 3, "hidden": 20}, "probabilities", ["gpu.matmul_fused"]),
    ("transformer_block", {"tokens": 4, "d": 24, "heads": 3, "ffn": 16}, "y",
     ["gpu.matmul_fused"]),
]
PLACEMENT = "placement:\n  - {match: '*', device: 'gpu:0', soft: true}\n"


def floats(path):
    data = path.read_bytes()
    head = struct.unpack("<H", data[8:10])[0]
    return [v[0] for v in struct.iter_unpack("<f", data[10 + head:])]


def run(folder, graph, params, output, devices, trace):
    out = folder / f"{devices.count('gpu')}.npy"
    command = [weir, "run", str(graph), "--in-process", devices,
               "-o", f"{output}={out}", "--trace", str(trace)]
    for name, value in params.items():
        command += ["--param", f"{name}={value}"]
    env = dict(os.environ, LD_LIBRARY_PATH=f"{tests}/standin")
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return floats(out)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for graph, params, output, kernels in GRAPHS:
        text = (source / "graphs" / f"{graph}.weir.yaml").read_text()
        placed = folder / "placed.weir.yaml"
        placed.write_text(text + PLACEMENT)
        trace = folder / "trace.json"
        want = run(folder, placed, params, output, "worker=1", trace)
        got = run(folder, placed, params, output, "worker=1,gpu=1", trace)
        assert len(got) == len(want) > 0
        most = max(abs(v) for v in want)
        for i, (g, w) in enumerate(zip(got, want)):
            assert abs(g - w) <= 1e-5 * most, (graph, i, g, w)
        for kernel in kernels:
            assert kernel in trace.read_text(), (graph, kernel)
