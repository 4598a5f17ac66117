# SPDX-License-Identifier: Apache-2.0
"""Writes the generated graphs of the benchmarks into a folder."""
import pathlib


def chain(n):
    lines = ["weir: 1", "inputs:", "  x: f32[] = fill([], 1.0)", "nodes:"]
    lines += [f"  v{i}: add({'x' if i == 0 else f'v{i - 1}'}, x)"
              for i in range(n)]
    return "\n".join(lines + [f"outputs: [v{n - 1}]", ""])


def wide(n):
    """n independent additions, no two of them equal; one stack reads them."""
    lines = ["weir: 1", "inputs:", "  x: f32[] = fill([], 1.0)", "nodes:"]
    lines += [f"  v{i}: add(x, {i}.5)" for i in range(n)]
    names = ", ".join(f"v{i}" for i in range(n))
    return "\n".join(lines + [f"  all: stack({names})",
                              "  y: reduce_sum(all)", "outputs: [y]", ""])


def matmul(n):
    return f"""weir: 1
inputs:
  a: f32[{n}, {n}]
  b: f32[{n}, {n}]
nodes:
  c: matmul(a, b)
outputs: [c]
"""


# Twelve of ResNet-50's convolutions: channels in and out, kernel, stride, size.
CONVS = [(3, 64, 7, 2, 224), (64, 64, 1, 1, 56), (64, 64, 3, 1, 56),
         (64, 256, 1, 1, 56), (256, 64, 1, 1, 56), (128, 128, 3, 2, 56),
         (256, 512, 1, 2, 56), (128, 512, 1, 1, 28), (128, 128, 3, 1, 28),
         (256, 256, 3, 1, 14), (512, 512, 3, 1, 7), (2048, 512, 1, 1, 7)]


def conv_name(shape, batch):
    c, oc, k, stride, size = shape
    return f"conv{c}x{oc}k{k}s{stride}h{size}b{batch}"


def conv(shape, batch):
    """A convolution whose weights are fed like its images."""
    c, oc, k, stride, size = shape
    return f"""weir: 1
inputs:
  x: f32[{batch}, {c}, {size}, {size}]
  w: f32[{oc}, {c}, {k}, {k}]
nodes:
  y: conv2d(x, w, stride={stride}, pad={k // 2})
outputs: [y]
"""


def one():
    return """weir: 1
inputs:
  x: f32[] = fill([], 1.0)
nodes:
  y: add(x, x)
outputs: [y]
"""


def attention(tokens, grad=False):
    """12 heads of 64; with |grad| the gradients of q, k and v too."""
    more = "  s: reduce_sum(mul(y, w))\n  dq, dk, dv: gradients(s, [q, k, v])\n"
    return f"""weir: 1
inputs:
  q: f32[1, 12, {tokens}, 64]
  k: f32[1, 12, {tokens}, 64]
  v: f32[1, 12, {tokens}, 64]
{f"  w: f32[1, 12, {tokens}, 64]" if grad else ""}
nodes:
  y: attention(q, k, v)
{more if grad else ""}
outputs: [{"dq, dk, dv" if grad else "y"}]
"""


def layered(n, width=100):
    """n nodes in layers of |width|, on which load and check are timed."""
    lines = ["weir: 1", "inputs:", "  x: f32[64, 64]", "nodes:"]
    for i in range(n):
        a = "x" if i < width else f"n{i - width}"
        b = "x" if i < width else f"n{i - width + (i * 7 % width) // 2}"
        b = b if i < width or int(b[1:]) < i else a
        op = ("add", "mul", "sub", "max")[i % 4]
        lines.append(f"  n{i}: {op}({a}, {b})")
    return "\n".join(lines + [f"outputs: [n{n - 1}]", ""])


def write(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"chain": chain(10000), "wide": wide(10000),
             "one": one(), "load100k": layered(100000)}
    texts.update({f"matmul{n}": matmul(n) for n in (64, 256, 1024, 2048)})
    texts.update({conv_name(s, b): conv(s, b)
                  for s in CONVS for b in (1, 8)})
    for n in (128, 512, 1024, 4096):
        texts[f"attention{n}"] = attention(n)
        texts[f"attention_grad{n}"] = attention(n, True)
    for name, text in texts.items():
        (folder / f"{name}.weir.yaml").write_text(text)
    return folder
