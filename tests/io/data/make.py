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

# TFRecord: TensorBoard's writer of records, protobuf's of messages.
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorboard.summary.writer.record_writer import RecordWriter

OPT, REP = 1, 3
pool = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tf",
                                          syntax="proto3")


def message(name, *fields):
    m = pool.message_type.add(name=name)
    for number, (field, kind, label, of) in enumerate(fields, 1):
        f = m.field.add(name=field, number=number, label=label, type=kind)
        if of:
            f.type_name = ".tf." + of
    return m


message("BytesList", ("value", 12, REP, None))
message("FloatList", ("value", 2, REP, None))
message("Int64List", ("value", 3, REP, None))
feature = message("Feature", ("bytes_list", 11, OPT, "BytesList"),
                  ("float_list", 11, OPT, "FloatList"),
                  ("int64_list", 11, OPT, "Int64List"))
features = message("Features", ("feature", 11, REP, "Features.FeatureEntry"))
entry = features.nested_type.add(name="FeatureEntry")
entry.field.add(name="key", number=1, label=OPT, type=9)
entry.field.add(name="value", number=2, label=OPT, type=11,
                type_name=".tf.Feature")
entry.options.map_entry = True
message("Example", ("features", 11, OPT, "Features"))
p = descriptor_pool.DescriptorPool()
p.Add(pool)
Example = message_factory.GetMessageClass(p.FindMessageTypeByName("tf.Example"))
with open("some.tfrecord", "wb") as f:
    w = RecordWriter(f)
    for i in range(5):
        e = Example()
        e.features.feature["x"].float_list.value.extend([i, i + 0.5])
        e.features.feature["id"].int64_list.value.extend([-i, 1 << 40])
        e.features.feature["word"].bytes_list.value.append(
            [b"red", b"green"][i % 2])
        e.features.feature["raw"].bytes_list.value.append(bytes([i, 2, 3]))
        if i != 3:
            e.features.feature["maybe"].int64_list.value.append(7 + i)
        w.write(e.SerializeToString(deterministic=True))
