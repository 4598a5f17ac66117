# SPDX-License-Identifier: Apache-2.0
"""The model and the data that `run` and `serve` have in common."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
GRAPH = "graphs/lenet_train.weir.yaml"
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}


def npy(path, dtype, shape, data):
    head = repr({"descr": dtype, "fortran_order": False, "shape": shape})
    path.write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + f"{head:117}\n".encode() +
                     data)
    return path


def train(weir, folder):
    """A checkpoint after 20 steps; its folder."""
    subprocess.run([weir, "train", GRAPH, "--set", "train.steps=20", "--set",
                    "train.epochs=1", "--checkpoint", folder, "-q"], cwd=ROOT,
                   env=ENV, check=True, stdout=subprocess.DEVNULL)
    return folder
