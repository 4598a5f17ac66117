#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the pictures of this folder: python3 make_png.py FOLDER. Needs no
library: the chunks are put together here, by the PNG specification.

  python3 make_png.py FOLDER          all of tests/io/data
  python3 make_png.py --idx IMAGES.gz N OUT.png   picture N of an IDX file
"""
import gzip
import struct
import sys
import zlib

GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
SAMPLES = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}
# Adam7: first row and column, and the steps.
PASSES = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2),
          (0, 1, 2, 2), (1, 0, 2, 1)]


def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(
        ">I", zlib.crc32(body))


def packed(row, bits):
    """Samples of a row as bytes, of 1 to 16 bits each."""
    text = "".join(format(v, f"0{bits}b") for v in row)
    text += "0" * (-len(text) % 8)
    return bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8))


def rows(pixels, bits, step):
    """Rows with their filters: none, then left (Sub), in turn."""
    out = b""
    for y, row in enumerate(pixels):
        line = packed([v for pixel in row for v in pixel], bits)
        if y % 2:
            line = bytes((b - (line[i - step] if i >= step else 0)) & 255
                         for i, b in enumerate(line))
        out += bytes([y % 2]) + line
    return out


def png(pixels, kind, bits=8, interlaced=False, more=b"", level=9):
    """|pixels|: rows of tuples of samples; |more|: chunks before the rows."""
    step = max(1, SAMPLES[kind] * bits // 8)
    parts = [pixels]
    if interlaced:
        parts = [[row[x::dx] for row in pixels[y::dy]]
                 for y, x, dy, dx in PASSES]
    data = b"".join(rows(p, bits, step) for p in parts if p and p[0])
    head = struct.pack(">2I5B", len(pixels[0]), len(pixels), bits, kind, 0, 0,
                       int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + more +
            chunk(b"IDAT", zlib.compress(data, level)) + chunk(b"IEND", b""))


def grid(samples, most, height=3, width=5):
    """Sample c of pixel (y, x) is (20 y + 7 x + 50 c) mod (most + 1)."""
    return [[tuple((20 * y + 7 * x + 50 * c) % (most + 1)
                   for c in range(samples)) for x in range(width)]
            for y in range(height)]


def pictures():
    yield "gray", png(grid(1, 255), GRAY)
    yield "rgb", png(grid(3, 255), RGB)
    yield "gray_alpha", png(grid(2, 255), GRAY_ALPHA)
    yield "rgba", png(grid(4, 255), RGBA)
    yield "rgb_interlaced", png(grid(3, 255, 9, 10), RGB, interlaced=True)
    yield "gray1", png(grid(1, 1), GRAY, 1)
    yield "gray4", png(grid(1, 15), GRAY, 4)
    yield "gray16", png([[(0,), (128,), (129,), (257,), (65535,)]], GRAY, 16)
    colours = chunk(b"PLTE", bytes([255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 8, 7]))
    yield "palette2", png(grid(1, 3), PALETTE, 2, more=colours)
    yield "palette_clear", png(grid(1, 3), PALETTE, 8, more=colours + chunk(
        b"tRNS", bytes([0, 128])))
    yield "gray_clear", png(grid(1, 255), GRAY, more=chunk(
        b"tRNS", struct.pack(">H", 27)))
    texts = (chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(
        b"tEXt", b"Title\0a picture") + chunk(b"iCCP", b"not a profile"))
    yield "chunks", png(grid(1, 255), GRAY, more=texts)


def main():
    if sys.argv[1] == "--idx":
        data = gzip.open(sys.argv[2]).read()
        _, count, height, width = struct.unpack(">4I", data[:16])
        at = 16 + int(sys.argv[3]) * height * width
        assert int(sys.argv[3]) < count
        image = [[(v,) for v in data[at + y * width:at + (y + 1) * width]]
                 for y in range(height)]
        with open(sys.argv[4], "wb") as f:
            f.write(png(image, GRAY))
        return
    for name, data in pictures():
        with open(f"{sys.argv[1]}/{name}.png", "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
