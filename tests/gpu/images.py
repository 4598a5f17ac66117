# SPDX-License-Identifier: Apache-2.0
"""Writes small data sets in the files of Fashion-MNIST: ten kinds of pictures
that a graph learns in a few steps. The data itself is too large for an archive.
"""
import gzip
import os
import random

SIDE, KINDS = 28, 10
SETS = {"train": 2048, "t10k": 256}


def picture(kind, noise):
    """A bright bar whose place is its kind, on a dark ground."""
    rows = [bytearray(noise.randrange(60) for _ in range(SIDE))
            for _ in range(SIDE)]
    for y in range(4, 24):
        for x in range(2 * kind + 2, 2 * kind + 6):
            rows[y][x] = 180 + noise.randrange(60)
    return b"".join(rows)


def write(folder):
    noise = random.Random(7)
    for name, count in SETS.items():
        kinds = [noise.randrange(KINDS) for _ in range(count)]
        images = bytes([0, 0, 8, 3]) + b"".join(
            n.to_bytes(4, "big") for n in (count, SIDE, SIDE)) + b"".join(
                picture(k, noise) for k in kinds)
        labels = bytes([0, 0, 8, 1]) + count.to_bytes(4, "big") + bytes(kinds)
        for what, data in (("images-idx3", images), ("labels-idx1", labels)):
            path = os.path.join(folder, f"{name}-{what}-ubyte.gz")
            with gzip.open(path, "wb", compresslevel=1) as f:
                f.write(data)
