#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LeNet on Fashion-MNIST beside PyTorch: the same initial values, the same
order of examples.

  torch_lenet.py WEIR GRAPH [--epochs N] [--steps N]

The first N losses must agree within 1e-3, and the accuracy on the test data
after the epochs within half a point. Exit status 77 (skipped) without PyTorch
or the data set.
"""
import argparse
import gzip
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

DATA = "/usr/share/datasets/fashion-mnist"


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("weir")
    p.add_argument("graph")
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--steps", type=int, default=50)
    return p.parse_args()


def idx(name, np):
    with gzip.open(os.path.join(DATA, name)) as f:
        raw = f.read()
    rank = raw[3]
    dims = struct.unpack(">%dI" % rank, raw[4:4 + 4 * rank])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(dims)


def save(path, tensors):
    """A safetensors file of f32 tensors."""
    header, at, blob = {}, 0, b""
    for name, t in tensors.items():
        data = t.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(t.shape),
                        "data_offsets": [at, at + len(data)]}
        at += len(data)
        blob += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob)


def make_model(torch, graph):
    nn = torch.nn
    act = nn.ReLU if "act=relu" in graph else nn.Sigmoid
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), act(), nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5), act(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), act(), nn.Linear(120, 84), act(),
        nn.Linear(84, 10))


def weir_names(model):
    """Weir's dense weights are [in, units]."""
    out = {}
    for name, layer in zip(("c1", "c2", "f1", "f2", "logits"),
                           (model[0], model[3], model[7], model[9],
                            model[11])):
        w = layer.weight
        out[name + "/w"] = w if w.dim() == 4 else w.t()
        out[name + "/b"] = layer.bias
    return out


def run_weir(args, folder, text, epochs):
    graph = os.path.join(folder, "graph.weir.yaml")
    text, found = re.subn(r"shuffle: \{[^}]*\}", "shuffle: false", text)
    assert found, "the graph has no shuffle to turn off"
    text = re.sub(r"\n  stop:.*", "", text)
    text += "  log: 1\n"
    with open(graph, "w") as f:
        f.write(text)
    out = subprocess.run(
        [args.weir, "train", graph, "--json", "--resume", "none", "--epochs",
         str(epochs), "--init", os.path.join(folder, "init.safetensors")],
        check=True, stdout=subprocess.PIPE, cwd=folder).stdout
    losses, accuracy = [], None
    for line in out.decode().splitlines():
        e = json.loads(line)
        if e["event"] == "step":
            losses.append(e["loss"])
        if e["event"] == "eval":
            accuracy = e["metrics"]["acc"]
    return losses, accuracy


def run_torch(torch, np, model, epochs):
    images = torch.from_numpy(
        idx("train-images-idx3-ubyte.gz", np).astype("float32") / 255)[:, None]
    labels = torch.from_numpy(
        idx("train-labels-idx1-ubyte.gz", np).astype("int64"))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3,
                                 weight_decay=1e-5)
    losses = []
    for _ in range(epochs):
        for at in range(0, len(labels), 64):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(
                model(images[at:at + 64]), labels[at:at + 64])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    test = torch.from_numpy(
        idx("t10k-images-idx3-ubyte.gz", np).astype("float32") / 255)[:, None]
    truth = torch.from_numpy(
        idx("t10k-labels-idx1-ubyte.gz", np).astype("int64"))
    with torch.inference_mode():
        accuracy = (model(test).argmax(1) == truth).float().mean().item()
    return losses, accuracy


def main():
    args = arguments()
    try:
        import numpy as np
        import torch
    except ImportError as e:
        skip(e)
    if not os.path.isdir(DATA):
        skip("no " + DATA)
    args.weir = os.path.abspath(args.weir)
    with open(args.graph) as f:
        text = f.read()
    model = make_model(torch, text)
    with tempfile.TemporaryDirectory() as folder:
        save(os.path.join(folder, "init.safetensors"), weir_names(model))
        ours, our_accuracy = run_weir(args, folder, text, args.epochs)
    theirs, their_accuracy = run_torch(torch, np, model, args.epochs)
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    worst = max(abs(a - b) for a, b in
                zip(ours[:args.steps], theirs[:args.steps]))
    print("first %d losses: largest difference %.2e" % (args.steps, worst))
    print("accuracy after %d epochs: weir %.4f, PyTorch %.4f"
          % (args.epochs, our_accuracy, their_accuracy))
    if worst > 1e-3 or abs(our_accuracy - their_accuracy) > 0.005:
        sys.exit(1)


if __name__ == "__main__":
    main()
