#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs give the same results on a mesh and without one.

  test_mesh.py WEIR SOURCE_ROOT

The same graph is run without a mesh and with many layouts. Where no sum is cut the bits are the
same; where one is, partial sums are added in another order: 1e-5 of the largest element. With
integers, whose sums are exact, bits are always the same.
"""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
TMP = pathlib.Path(tempfile.mkdtemp(prefix="weir-mesh-"))
bad = 0


def check(ok, what):
    global bad
    if not ok:
        bad += 1
        print("FAILED:", what)


def weir(*args):
    return subprocess.run([WEIR, *map(str, args)], env=ENV, timeout=120, capture_output=True, text=True)


def run(text, feeds, *more):
    path = TMP / "g.weir.yaml"
    path.write_text(text)
    args = [a for k, v in feeds.items() for a in ("-i", f"{k}={v}")]
    p = weir("run", path, "--json", *args, *more)
    if p.returncode != 0:
        return None, p
    return {k: v["data"] for k, v in json.loads(p.stdout)["outputs"].items()}, p


def flat(data):
    return [y for x in data for y in flat(x)] if isinstance(data, list) else [data]


def close(a, b, rtol):
    a, b = flat(a), flat(b)
    most = max([abs(x) for x in b] + [1e-30])
    return len(a) == len(b) and all(abs(x - y) <= rtol * most for x, y in zip(a, b))


def bare(text):
    text = re.sub(r"#.*\n", "\n", text)
    return re.sub(r"(?m)^layout:.*\n", "", re.sub(r"(?m)^mesh:.*\n(?:  .*\n)*", "", text))


def some(layouts):
    """All of them; under a sanitizer every second."""
    return layouts[::2] if "CLI_SANITIZED" in os.environ else layouts


def with_layout(text, layout, axes="{row: 2, col: 2}"):
    return bare(text) + f"mesh:\n  axes: {axes}\nlayout: {layout}\n"


def compare(text, layout, feeds, exact, what, axes="{row: 2, col: 2}"):
    want, p = run(bare(text), feeds)
    check(want is not None, f"{what}: without mesh: {p.stderr}")
    devices = 1
    for size in re.findall(r": (\d+)", axes):
        devices *= int(size)
    # Several ranks on a device meet those of others in one order of the plan.
    few = [["--in-process", cluster, "--placer", f"random:{seed}"]
           for seed, cluster in enumerate(("worker=2", "worker=3", "ps=1,worker=2"))]
    ways = [["-t", 1], ["-t", 4], ["--in-process", f"worker=1,cpu={devices}"], *few]
    if "CLI_SANITIZED" in os.environ:  # one way of each kind
        ways = ways[1:4]
    for more in ways:
        got, p = run(with_layout(text, layout, axes), feeds, *more)
        if got is None or want is None:
            check(False, f"{what} {layout}: {p.stderr[-800:]}")
            return
        for name in want:
            same = got[name] == want[name]
            check(same or (not exact and close(got[name], want[name], 1e-5)),
                  f"{what} {layout} {more}: {name} is {got[name]}, not {want[name]}")


def integers(shape, rng, low=-4, high=4):
    n = 1
    for d in shape:
        n *= d
    dims = "x".join(map(str, shape))
    return f"f32:{dims}=" + ",".join(str(rng.randint(low, high)) for _ in range(n))


# ---- Blocked products: rows, columns, partial sums

def products():
    text = (ROOT / "graphs/matmul_mesh.weir.yaml").read_text()
    rng = random.Random(1)
    ints = {"a": integers([8, 6], rng), "b": integers([6, 4], rng)}
    reals = {"a": "random:seed=1", "b": "random:seed=2"}
    for layout in some(("{}", "{m: row}", "{n: col}", "{m: row, n: col}", "{k: col}", "{m: row, k: col}",
                        "{n: col, k: row}")):
        compare(text, layout, ints, True, "matmul, integers")
        compare(text, layout, reals, "k:" not in layout, "matmul")
    compare(text, "{m: x, k: y, n: z}", ints, True, "matmul on a cube", "{x: 2, y: 3, z: 2}")
    compare(text, "{m: x}", ints, True, "matmul on a line", "{x: 8}")
    compare(text, "{m: x, k: y}", ints, True, "axes of one", "{x: 1, y: 1}")


# ---- One training step of a perceptron, by layout alone

def perceptron():
    text = (ROOT / "graphs/mlp_mesh.weir.yaml").read_text()
    reals = {"x": "random:seed=1"}
    for layout in some(("{batch: row}", "{}", "{hidden: row}", "{batch: row, hidden: col}", "{features: col}",
                        "{classes: row, batch: col}")):
        compare(text, layout, reals, layout == "{}", "mlp")
    # Forward, no contracted dimension is cut: the same bits.
    forward = re.sub(r"outputs:.*", "outputs: [logits]", text)
    for layout in some(("{batch: row}", "{batch: col}", "{batch: row, classes: col}")):
        compare(forward, layout, reals, True, "mlp forward")
    # Large values use memory again, which no part of a collective may wait for.
    large = re.sub(r"classes: \d+", "classes: 100000", with_layout(text, "{batch: row, hidden: col}"))
    path = TMP / "large.weir.yaml"
    path.write_text(large)
    p = weir("run", path, "-i", "x=random:seed=1", "--timeout", "100s")
    check("classes: 100000" in large and p.returncode == 0, f"large values: {p.returncode} {p.stderr[-300:]}")
    got, p = run(with_layout(text, "{batch: row}"), reals, "-p", "batch=10")
    check(got is not None and len(got["logits"]) == 10, f"-p batch=10: {p.stderr}")
    got, p = run(with_layout(text, "{batch: row}"), reals, "-p", "batch=9")
    check(p.returncode == 4 and "W3052" in p.stderr, f"-p batch=9: {p.stderr}")


# ---- Collectives of each kind

SQUARE = """weir: 1
dims: {n: 6, p: 4}
inputs: {a: "f32[n, n]", v: "f32[n]", b: "f32[n, p]"}
nodes:
  t: transpose(a)
  s: reduce_sum(a, axis=0)
  w: 'einsum("n k, n -> k", a, v)'
  g: softmax(mul(a, a), axis=0)
  c: matmul(a, b)
outputs: [t, s, w, g, c]
"""


def kinds():
    rng = random.Random(2)
    feeds = {"a": integers([6, 6], rng), "v": integers([6], rng), "b": integers([6, 4], rng)}
    exact = SQUARE.replace("[t, s, w, g, c]", "[t, s, w, c]")
    for layout in ("{n: row}", "{n: row, p: col}", "{p: row, n: col}"):
        compare(exact, layout, feeds, True, "square")
        compare(SQUARE, layout, feeds, False, "square")
    path = TMP / "square.weir.yaml"
    path.write_text(with_layout(SQUARE, "{n: row}"))
    shown = weir("show", "graph", path, "--after", "mesh").stdout
    for op, line in (("all_to_all", "t/all_to_all@0: all_to_all("), ("reduce_scatter", "s/reduce_scatter@2: "),
                     ("all_gather", ": all_gather(")):
        check(line in shown, f"no {op} in {shown}")
    text = (ROOT / "graphs/matmul_mesh.weir.yaml").read_text()
    path.write_text(with_layout(text, "{m: row, k: col}"))
    shown = weir("show", "graph", path, "--after", "mesh").stdout
    check('c/all_reduce@3: all_reduce(c@3, group=1, rank=1, ranks=2, mesh_axis="col")  # f32[4, 4] @ '
          "/device:CPU:3 after c@2" in shown, shown)
    p = weir("show", "graph", ROOT / "graphs/mlp.weir.yaml", "--after", "mesh")
    check(p.returncode == 2 and "no `mesh`" in p.stderr, p.stderr)


# ---- A node of one device fails: the others end, and no variable changes

FAILS = """weir: 1
dims: {n: 4, k: 2}
inputs: {x: "i32[n, k]", y: "i32[n, k]"}
nodes:
  d: div(x, y)
  s: reduce_sum(d, axis=0)
outputs: [s]
"""


def failures():
    x = "i32:4x2=8,8,8,8,8,8,8,8"
    compare(FAILS, "{n: row}", {"x": x, "y": "i32:4x2=1,2,4,8,1,2,4,8"}, True, "integers")
    got, p = run(with_layout(FAILS, "{n: row}"), {"x": x, "y": "i32:4x2=1,2,4,8,1,2,4,0"})
    check(p.returncode == 6 and "d@" in p.stderr, f"division by zero: {p.returncode} {p.stderr}")


# ---- Random graphs, random layouts

class Maker:
    """Nodes of exact integer arithmetic over values of named dimensions."""

    def __init__(self, rng):
        self.rng = rng
        self.names = ["p", "q", "r", "s"]
        self.size = {"p": 4, "q": 6, "r": 8, "s": 2}
        self.values = []  # (name, dims)
        self.lines = []
        self.inputs = {}
        for i in range(3):
            dims = rng.sample(self.names, rng.randint(1, 3))
            self.inputs[f"x{i}"] = dims
            self.values.append((f"x{i}", dims))

    def pick(self, fits=lambda dims: True):
        found = [v for v in self.values if fits(v[1])]
        return self.rng.choice(found) if found else None

    def add(self, call, dims):
        name = f"n{len(self.lines)}"
        self.lines.append(f"  {name}: '{call}'")
        self.values.append((name, dims))

    def step(self):
        rng = self.rng
        kind = rng.randrange(10)
        a, da = self.pick()
        if kind == 0:
            op = rng.choice(["abs", "neg", "relu", "square", "identity", "zeros_like"])
            self.add(f"clip({op}({a}), min=-9, max=9)", da)
        elif kind == 1:
            b, db = self.pick(lambda d: set(d) <= set(da) and d == [x for x in da if x in d][-len(d):]
                              and da[len(da) - len(d):] == d)
            self.add(f"{rng.choice(['add', 'sub', 'max', 'min'])}({a}, {b})", da)
        elif kind == 2 and da:
            axis = rng.randrange(len(da))
            op = rng.choice(["reduce_sum", "reduce_max", "reduce_min"])
            self.add(f"{op}({a}, axis={axis})", da[:axis] + da[axis + 1:])
        elif kind == 3 and len(da) > 1:
            perm = rng.sample(range(len(da)), len(da))
            self.add(f"transpose({a}, perm={perm})", [da[i] for i in perm])
        elif kind in (4, 5, 6):
            b, db = self.pick()
            every = list(dict.fromkeys(da + db))
            out = [d for d in every if rng.random() < 0.6][:3]
            rng.shuffle(out)
            eq = f"{' '.join(da)}, {' '.join(db)} -> {' '.join(out)}"
            if da and db:
                self.add(f'clip(einsum("{eq}", {a}, {b}), min=-9, max=9)', out)
        elif kind == 7 and len(da) == 2:
            found = self.pick(lambda d: len(d) == 2 and d[0] == da[1] and d[1] != da[0])
            if found:
                self.add(f"clip(matmul({a}, {found[0]}), min=-9, max=9)", [da[0], found[1][1]])
        elif kind == 8 and len(da) == 2:
            self.add(f"reshape(reshape({a}, [{da[0]} * {da[1]}]), [{da[0]}, {da[1]}])", da)
        elif kind == 9 and da:
            self.add(f"reduce_sum(concat({a}, {a}, axis=0), axis=0)", da[1:])

    def text(self):
        dims = ", ".join(f"{k}: {v}" for k, v in self.size.items())
        inputs = "".join(f"  {k}: 'f32[{', '.join(v)}]'\n" for k, v in self.inputs.items())
        used = " ".join(self.lines)
        outs = [n for n, _ in self.values[3:] if not re.search(rf"\b{n}\b[,)]", used)]
        return (f"weir: 1\ndims: {{{dims}}}\ninputs:\n{inputs}nodes:\n" + "\n".join(self.lines) +
                f"\noutputs: [{', '.join(outs)}]\n")

    def feeds(self):
        return {k: integers([self.size[d] for d in v], self.rng, -2, 2) for k, v in self.inputs.items()}


def random_graphs(count):
    refused = 0
    for seed in range(count):
        rng = random.Random(seed)
        m = Maker(rng)
        while len(m.lines) < 8:
            m.step()
        axes = rng.choice(["{row: 2, col: 2}", "{row: 2}", "{a: 2, b: 1, c: 2}"])
        names = re.findall(r"(\w+):", axes)
        layout = {d: rng.choice(names) for d in m.names if rng.random() < 0.45}
        shown = "{" + ", ".join(f"{k}: {v}" for k, v in layout.items()) + "}"
        text, feeds = m.text(), m.feeds()
        want, p = run(bare(text), feeds)
        check(want is not None, f"seed {seed}: {p.stderr}")
        got, p = run(with_layout(text, shown, axes), feeds)
        if got is None and "W3053" in p.stderr:
            refused += 1
            continue
        check(got == want, f"seed {seed} {axes} {shown}: {p.stderr[-600:]}\n{text}\n{got}\n{want}")
    print(f"{count} random graphs, {refused} with a layout that is refused")
    check(refused < count // 2, "most layouts are refused")


# ---- Training by `train:`, checkpoints across layouts, placement

def training():
    data = pathlib.Path("/usr/share/datasets/fashion-mnist")
    if not data.is_dir():
        print("training: not run, the package dataset-fashion-mnist is missing")
        return
    text = (ROOT / "graphs/mlp_train.weir.yaml").read_text()
    text = text.replace("params: {batch: 128, hidden: 128}", "params: {batch: 100}")
    text = text.replace("dims: [n]", "dims: {n: 100, hid: 16}").replace("units=hidden", "units=hid")
    paths, losses = [], []
    for i, layout in enumerate((None, "{n: row}", "{n: row, hid: col}")):
        paths.append(TMP / f"train{i}.weir.yaml")
        mesh = f"mesh: {{axes: {{row: 2, col: 2}}}}\nlayout: {layout}\n" if layout else ""
        paths[i].write_text(text + mesh)
        p = weir("train", paths[i], "--steps", 5, "--checkpoint", TMP / f"ckpt{i}")
        check(p.returncode == 0, f"train {layout}: {p.stderr[-600:]}")
    # A checkpoint of one layout is read under another.
    for graph, ckpt in ((0, 0), (0, 1), (0, 2), (1, 0), (2, 1)):
        p = weir("eval", paths[graph], "--checkpoint", TMP / f"ckpt{ckpt}", "--json")
        m = re.search(r'"loss": ([0-9.e+-]+)', p.stdout)
        check(m is not None, f"eval {graph} {ckpt}: {p.stdout} {p.stderr[-600:]}")
        losses.append(float(m.group(1)) if m else 0.0)
    check(all(abs(x - losses[0]) <= 1e-5 * losses[0] for x in losses), f"losses {losses}")


def placement():
    text = with_layout("""weir: 1
dims: {n: 8}
inputs: {a: "f32[n, n]"}
cluster: {worker: 1, cpu: 4, local: {latency: 10us, bandwidth: 1GB/s}}
nodes: {g: "softmax(mul(a, a), axis=0)"}
outputs: [g]
""", "{n: row}", "{row: 4}")
    path = TMP / "place.weir.yaml"
    path.write_text(text)
    p = weir("place", path, "--format", "json")
    check(p.returncode == 0, p.stderr)
    ranks = [n for n in json.loads(p.stdout)["nodes"] if "all_gather" in n["name"]] if p.stdout else []
    # (4 - 1) (10 us + 256 B / 4 at 1 GB/s)
    check(len(ranks) == 4 and all(n["end_ns"] - n["start_ns"] == 30192 for n in ranks), f"all_gather: {ranks}")
    check(len({n["device"] for n in ranks}) == 4, f"devices: {ranks}")
    p = weir("place", ROOT / "graphs/mlp_mesh.weir.yaml", "--all")
    check(re.search(r"h@3 +.*CPU:3 .* only", p.stdout) is not None, p.stdout + p.stderr)


training()
placement()
products()
perceptron()
kinds()
failures()
random_graphs(4 if "CLI_SANITIZED" in os.environ else 80)
print("failed" if bad else "ok", bad)
sys.exit(bad > 0)
