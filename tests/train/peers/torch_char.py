#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The character model of graphs/rnn_char beside PyTorch: the same initial
values, the same text.

  torch_char.py WEIR GRAPH [--steps N]

The first 50 losses must agree within 1e-3, and the perplexity of the evaluated
text after the steps within 2 %. Exit status 77 (skipped) without PyTorch or
the text.
"""
import argparse
import collections
import json
import math
import os
import re
import subprocess
import sys
import tempfile

from torch_lenet import save, skip

DATA = "/usr/share/games/fortunes"
BATCH, STEPS, VOCAB, HIDDEN = 32, 64, 128, 128


def text_of(names):
    return "".join(open(os.path.join(DATA, n), encoding="utf-8",
                        newline="").read() for n in names)


def files_of(graph, section):
    """The list of files in one data set of the graph."""
    part = graph[graph.index("\n  %s:" % section):]
    return re.search(r"files: \[([^\]]*)\]", part).group(1).split(", ")


def vocabulary(text):
    """The unknown first, then by count, then in byte order."""
    counts = collections.Counter(text)
    order = sorted(counts, key=lambda c: (-counts[c], c.encode()))
    return {c: i + 1 for i, c in enumerate(order[:VOCAB - 1])}


def batches(text, index, torch):
    """Each row of the batches is a stream: an equal piece of the text."""
    ids = torch.tensor([index.get(c, 0) for c in text])
    piece = len(ids) // BATCH
    for s in range((piece - 1) // STEPS):
        at = [b * piece + s * STEPS for b in range(BATCH)]
        yield (torch.stack([ids[a:a + STEPS] for a in at]),
               torch.stack([ids[a + 1:a + STEPS + 1] for a in at]))


def make_model(torch):
    torch.manual_seed(2)
    nn = torch.nn
    return nn.ModuleDict({"x": nn.Embedding(VOCAB, HIDDEN),
                          "gru": nn.GRU(HIDDEN, HIDDEN, batch_first=True),
                          "logits": nn.Linear(HIDDEN, VOCAB)})


def weir_names(m, embedding):
    g = m["gru"]
    return {embedding: m["x"].weight, "w": g.weight_ih_l0.t(),
            "r": g.weight_hh_l0.t(), "b": g.bias_ih_l0, "rb": g.bias_hh_l0,
            "logits/w": m["logits"].weight.t(), "logits/b": m["logits"].bias}


def loss_of(torch, m, x, y, state):
    out, state = m["gru"](m["x"](x), state)
    return torch.nn.functional.cross_entropy(
        m["logits"](out).flatten(0, 1), y.flatten()), state.detach()


def run_torch(torch, m, train, valid, index, steps):
    optimizer = torch.optim.Adam(m.parameters(), lr=2e-3)
    losses, done = [], 0
    while done < steps:
        state = None
        for x, y in batches(train, index, torch):
            optimizer.zero_grad()
            loss, state = loss_of(torch, m, x, y, state)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(m.parameters(), 5)
            optimizer.step()
            losses.append(loss.item())
            done += 1
            if done == steps:
                break
    total, count, state = 0, 0, None
    with torch.inference_mode():
        for x, y in batches(valid, index, torch):
            loss, state = loss_of(torch, m, x, y, state)
            total, count = total + loss.item(), count + 1
    return losses, math.exp(total / count)


def run_weir(args, folder, graph):
    path = os.path.join(folder, "graph.weir.yaml")
    with open(path, "w") as f:
        f.write(re.sub(r"every: 1 epoch", "every: %d" % args.steps, graph) +
                "  log: 1\n")
    out = subprocess.run(
        [args.weir, "train", path, "--json", "--resume", "none", "--steps",
         str(args.steps), "--init", os.path.join(folder, "init.safetensors")],
        check=True, stdout=subprocess.PIPE, cwd=folder).stdout
    events = [json.loads(line) for line in out.decode().splitlines()]
    return ([e["loss"] for e in events if e["event"] == "step"],
            [e["metrics"]["ppl"] for e in events if e["event"] == "eval"][-1])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("weir")
    p.add_argument("graph")
    p.add_argument("--steps", type=int, default=300)
    args = p.parse_args()
    try:
        import torch
    except ImportError as e:
        skip(e)
    if not os.path.isdir(DATA):
        skip("no " + DATA)
    args.weir = os.path.abspath(args.weir)
    with open(args.graph) as f:
        graph = f.read()
    train, valid = (text_of(files_of(graph, s)) for s in ("train", "valid"))
    index = vocabulary(train)
    model = make_model(torch)
    with tempfile.TemporaryDirectory() as folder:
        save(os.path.join(folder, "init.safetensors"),
             weir_names(model, "x/w"))
        ours, our_ppl = run_weir(args, folder, graph)
    theirs, their_ppl = run_torch(torch, model, train, valid, index,
                                  args.steps)
    worst = max(abs(a - b) for a, b in zip(ours[:50], theirs[:50]))
    print("first 50 losses: largest difference %.2e" % worst)
    print("perplexity after %d steps: weir %.4f, PyTorch %.4f"
          % (args.steps, our_ppl, their_ppl))
    if worst > 1e-3 or abs(our_ppl / their_ppl - 1) > 0.02:
        sys.exit(1)


if __name__ == "__main__":
    main()
