#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The networks of graphs/: whole, they load and have their shapes; made small,
they give the same bits on 1 and 2 threads, what the reference kernels give, and
values known from the day when tests/bench/check_networks.py compared the whole
ones with PyTorch; they train; and a convolution is one group with its
batch_norm, residual and activation.

  test_networks.py WEIR SOURCE_ROOT
"""
import io
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
WORDS = ("tokens=8", "layers=2", "d=64", "heads=4", "scale=0.25", "ffn=96",
         "vocab=50", "places=16")
SMALL = {
    "resnet50": ("size=32", "width=8", "depth=[2, 1, 2, 1]", "classes=10"),
    "mobilenet_v3": ("size=32", "classes=10"),
    "bert_base": WORDS,
    "gpt2_small": WORDS,
}
# The convolutions of the small networks, and all other steps.
CONVS = {"resnet50": (1 + 3 * 6 + 4, {"max_pool", "reduce_mean"}),
         "mobilenet_v3": (3 + 14 * 3 + 8 * 2 + 1, {"reduce_mean", "mul"})}
WHOLE = {"resnet50": {"logits": [1, 1000]},
         "mobilenet_v3": {"logits": [1, 1000]},
         "bert_base": {"y": [1, 128, 768], "logits": [1, 2]},
         "gpt2_small": {"logits": [1, 128, 50257]}}
# The sum of the absolute values of each output.
SUMS = {("resnet50", "logits"): 98.4289,
        ("mobilenet_v3", "logits"): 0.664472,
        ("bert_base", "y"): 826.621, ("bert_base", "logits"): 2.96971,
        ("gpt2_small", "logits"): 106.787}


def weir(*args, code=0):
    p = subprocess.run([WEIR, *map(str, args)], env=ENV, timeout=120,
                       capture_output=True, text=True)
    if p.returncode != code:
        raise AssertionError(f"{args}: {p.returncode}: {p.stderr}")
    return p.stdout


def params(name, *more):
    return [word for p in (*SMALL[name], *more) for word in ("-p", p)]


def graph(name):
    return ROOT / f"graphs/{name}.weir.yaml"


def feed(name):
    key = "text" if SMALL[name] is WORDS else "image"
    return ["-i", f"{key}=random:seed=3"]


def run(name, *args, batch=2):
    return weir("run", graph(name), "--json", "-q", *feed(name),
                *params(name, f"batch={batch}"), *args)


def numbers(data):
    return ([n for part in data for n in numbers(part)]
            if isinstance(data, list) else [data])


def npz(path, **arrays):
    """name=(dtype, shape, numbers)."""
    with zipfile.ZipFile(path, "w") as file:
        for name, (dtype, shape, values) in arrays.items():
            head = (f"{{'descr': '{dtype}', 'fortran_order': False, "
                    f"'shape': {tuple(shape)}, }}").encode()
            head += b" " * (-(len(head) + 11) % 64) + b"\n"
            out = io.BytesIO()
            out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)))
            out.write(head)
            out.write(struct.pack(f"<{len(values)}{'fq'[dtype[1] == 'i']}",
                                  *values))
            file.writestr(f"{name}.npy", out.getvalue())


class Networks(unittest.TestCase):
    def test_whole(self):
        for name, shapes in WHOLE.items():
            weir("check", graph(name))
            text = weir("show", "graph", graph(name))
            for output, shape in shapes.items():
                dims = ", ".join(map(str, shape))
                self.assertRegex(text, rf"(?m)^ *{output}\b.*\[{dims}\]", name)

    def test_values(self):
        for name in SMALL:
            one = run(name, "--threads", 1)
            self.assertEqual(one, run(name, "--threads", 2), name)
            slow = json.loads(run(name, "--ref-kernels"))["outputs"]
            for key, out in json.loads(one)["outputs"].items():
                got, want = numbers(out["data"]), numbers(slow[key]["data"])
                most = max(map(abs, want))
                apart = max(abs(a - b) for a, b in zip(got, want))
                self.assertLess(apart, 1e-5 * most, f"{name} {key}")
                total = math.fsum(map(abs, want))
                self.assertAlmostEqual(total / SUMS[name, key], 1, 4,
                                       f"{name} {key}: {total}")

    def test_a_convolution_is_one_group(self):
        for name, (convs, others) in CONVS.items():
            text = weir("bench", graph(name), "--explain", "--runs", 1,
                        *params(name, "batch=1"))
            rows = re.findall(r"(?m)^\d+\t\S+\t(\S+)\t(\S+)", text)
            made = [k for op, k in rows
                    if op == "conv2d" or op == "group" and "conv2d" in k]
            self.assertEqual(len(made), convs, name)
            rest = {op for op, k in rows if "conv2d" not in k and
                    "matmul" not in k}
            self.assertEqual(rest, others, name)

    def train(self, name, folder, threads):
        n = 4
        arrays = {"label": ("<i8", [n], [0, 1, 1, 0])}
        if SMALL[name] is WORDS:
            arrays["text"] = ("<i8", [n, 8], [i % 50 for i in range(8 * n)])
        else:
            arrays["image"] = ("<f4", [n, 3, 32, 32],
                               [i % 255 / 255 for i in range(n * 3072)])
        npz(folder / "train.npz", **arrays)
        return weir("train", graph(name), "--json", "--data-root", folder,
                    "--set", "train.epochs=2", "--threads", threads,
                    "--checkpoint", folder / f"run{threads}",
                    *params(name, "batch=2"))

    def test_training_step(self):
        for name in ("resnet50", "bert_base"):
            with tempfile.TemporaryDirectory() as folder:
                ways = [self.train(name, pathlib.Path(folder), t)
                        for t in (1, 2)]
            ends = [json.loads(w.splitlines()[-1]) for w in ways]
            self.assertEqual(ends[0]["step"], 4, name)
            self.assertEqual(ends[0]["loss"], ends[1]["loss"], name)
            self.assertTrue(0 < ends[0]["loss"] < 20, ends)

    def test_exported(self):
        """A trained network with its folded batch norms; its params, lists
        among them, are those that it was trained with."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.train("resnet50", folder, 1)
            weir("export", graph("resnet50"), "-q", "--checkpoint",
                 folder / "run1", "-o", folder / "out.weir.yaml",
                 *params("resnet50", "batch=2"))
            text = (folder / "out.weir.yaml").read_text()
            self.assertIn("depth: [2, 1, 2, 1]", text)
            args = ("--json", "-q", *feed("resnet50"))
            fast, slow = (
                json.loads(weir("run", folder / "out.weir.yaml", *args, *more))
                ["outputs"]["logits"]["data"]
                for more in ((), ("--ref-kernels", "--no-fusion")))
            most = max(map(abs, numbers(slow)))
            for a, b in zip(numbers(fast), numbers(slow)):
                self.assertAlmostEqual(a / most, b / most, 4)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
