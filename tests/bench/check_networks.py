#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the networks of graphs/ with the same in PyTorch, value by value.

  check_networks.py [--weir build/cli/weir] [--batch 2] [NAME ...]

Run it with a Python that has numpy and torch. The module's weights go into a
safetensors file, `weir export --weights` makes a graph of it, both get the same
inputs, and the largest difference of each output is printed, as a share of the
largest value; 1 is the exit status where one is above 1e-4.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch

import networks

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUTPUTS = {"resnet50": ["logits"], "mobilenet_v3": ["logits"],
           "bert_base": ["y", "logits"], "gpt2_small": ["logits"]}
BOUND = 1e-4


def write_safetensors(path, arrays):
    header, at = {}, 0
    for name, a in arrays.items():
        header[name] = {"dtype": "F32", "shape": a.shape,
                        "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for a in arrays.values():
            file.write(a.tobytes())


def weir(*args):
    p = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    if p.returncode:
        raise SystemExit(f"{args}: {p.stderr}")


def outputs_of(args, name, net, inputs, folder):
    """What weir gives, by name."""
    write_safetensors(folder / "w.safetensors", networks.values(net))
    graph = folder / f"{name}.weir.yaml"
    weir(args.weir, "export", ROOT / f"graphs/{name}.weir.yaml", "-q",
         "--weights", folder / "w.safetensors", "-o", graph,
         "-p", f"batch={args.batch}")
    feeds, fetches = [], []
    for key, value in zip(networks.INPUTS[name], inputs):
        np.save(folder / f"{key}.npy", value.numpy())
        feeds += ["-i", f"{key}=@{folder}/{key}.npy"]
    for key in OUTPUTS[name]:
        fetches += ["-o", f"{key}=@{folder}/out_{key}.npy"]
    weir(args.weir, "run", graph, "-q", *feeds, *fetches)
    return {k: np.load(folder / f"out_{k}.npy") for k in OUTPUTS[name]}


def check(args, name):
    net, inputs = networks.make(name, args.batch)
    networks.vary(net)
    if name == "bert_base":  # a text that ends, and a second sentence
        inputs[1][-1, 100:] = 0
        inputs[2][:, 60:] = 1
    with torch.inference_mode():
        want = net.eval()(*inputs)
    want = want if isinstance(want, tuple) else (want,)
    with tempfile.TemporaryDirectory() as folder:
        got = outputs_of(args, name, net, inputs, pathlib.Path(folder))
    good = True
    for (key, mine), theirs in zip(got.items(), want):
        theirs = theirs.numpy()
        assert mine.shape == theirs.shape, (mine.shape, theirs.shape)
        most = float(np.abs(theirs).max())
        apart = float(np.abs(mine - theirs).max()) / most
        good = good and apart <= BOUND
        print(f"{name:13} {key:7} {str(theirs.shape):18} values to {most:8.4g},"
              f" largest difference {apart:.2e} of that", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", default=str(ROOT / "build/cli/weir"))
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    results = [check(args, name) for name in args.names or networks.NETWORKS]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
