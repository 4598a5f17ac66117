#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the part of tests/ops/<op>.yaml whose values come from NumPy and
PyTorch, and ONNX's own for optimisers: everything below the marker line. The
part above it is written by hand and kept. Needs numpy, torch and onnx;
building and testing do not.

usage: generate_cases.py [OP...]      (default: all ops that have a file)"""
import pathlib
import sys

import numpy as np

from generate import (activations, arrays, attend, elementwise, gradients,
                      losses, optimisers, recurrent)
from generate.emit import CASES

HERE = pathlib.Path(__file__).parent
MARKER = "# ---- Written by generate_cases.py: do not edit below this line.\n"


def main(names):
    with np.errstate(all="ignore"):
        for module in (elementwise, activations, arrays, attend, gradients,
                       losses, optimisers, recurrent):
            module.cases()
    for op in names or sorted(CASES):
        path = HERE / (op + ".yaml")
        if not path.exists():
            continue
        by_hand = path.read_text().split(MARKER)[0]
        text = "\n".join(CASES[op])
        path.write_text(by_hand + MARKER + text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
