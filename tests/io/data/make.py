#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of this folder: python3 make.py (NumPy 2, safetensors)."""
import gzip
import struct

import numpy as np
from safetensors.numpy import save_file

grid = np.arange(6, dtype=np.float32).reshape(2, 3) + 0.5
cube = np.arange(24, dtype=np.int64).reshape(2, 3, 4) - 3
np.save("f4.npy", grid)
np.save("f8_fortran.npy", np.asfortranarray(cube.astype(np.float64)))
np.save("i4_big.npy", cube[0].astype(">i4"))
np.save("i8.npy", cube)
np.save("u1_empty.npy", np.zeros((0, 5), np.uint8))
np.save("b1.npy", np.array([True, False, True]))
np.save("scalar.npy", np.float64(2.5))
with open("v2.npy", "wb") as f:
    np.lib.format.write_array(f, grid, version=(2, 0))
with open("v3.npy", "wb") as f:
    np.lib.format.write_array(f, grid, version=(3, 0))
np.savez("stored.npz", grid=grid, cube=cube)
np.savez_compressed("deflated.npz", grid=grid, zeros=np.zeros(3000, np.int32))
save_file({"grid": grid, "cube": cube, "flags": np.array([True, False]),
           "half": np.ones(3, np.float16)}, "some.safetensors",
          metadata={"from": "numpy"})
head = struct.pack(">HBB2I", 0, 0x0d, 2, 2, 3)
with open("f4.idx", "wb") as f:
    f.write(head + grid.astype(">f4").tobytes())
with gzip.GzipFile("u1.idx.gz", "wb", mtime=0) as f:
    f.write(struct.pack(">HBB3I", 0, 0x08, 3, 2, 4, 4) + bytes(range(32)))
