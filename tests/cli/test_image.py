#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures in, names of classes out: PNG input, labels, the best classes, the
confusion matrix, and padding=same against pads by hand.

  test_image.py WEIR SOURCE_ROOT [TEST...]
"""
import fcntl
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

WEIR = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/io/data"))
import make_png  # noqa: E402

CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
TROUSER = str(ROOT / "tests/cli/data/trouser.png")
# Class k scores the picture's pixel k.
GRAPH = """\
weir: 1
dims: [n]
inputs: {image: "u8[%s, 2, 3]", label: "u8[%s]"}
nodes:
  x: reshape(cast(image, f32), [%s, 6])
  w: var([6, 3], init=zeros())
  y: matmul(x, w)
  m: mean(y)
  loss: mean(sparse_softmax_xent(y, label))
outputs: [y]
data:
  some:
    source: memory
    values:
      image: [[[9, 0, 0], [0, 0, 0]], [[0, 9, 0], [0, 0, 0]],
              [[0, 0, 9], [0, 0, 0]], [[0, 0, 9], [0, 0, 0]]]
      label: [0, 2, 2, 0]
    columns: {image: {dtype: u8}, label: {dtype: u8}}
    batch: 2
train: {minimize: loss, optimizer: sgd(lr=0.1), steps: 1,
        eval: {data: some, metrics: [loss]}}
"""


def safetensors(name, shape, values):
    data = struct.pack(f"<{len(values)}f", *values)
    head = json.dumps({name: {"dtype": "F32", "shape": shape,
                              "data_offsets": [0, len(data)]}}).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + data


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.dir.name)
        self.addCleanup(self.dir.cleanup)

    def file(self, name, content):
        if isinstance(content, str):
            content = content.encode()
        (self.path / name).write_bytes(content)

    def weir(self, *args, code=0):
        p = subprocess.run([WEIR, *map(str, args)], cwd=self.path, timeout=300,
                           capture_output=True, env=CLEAN)
        self.err = p.stderr.decode()
        self.assertEqual(p.returncode, code, f"{args}: {self.err}")
        return p.stdout.decode()


class Classes(Case):
    def setUp(self):
        super().setUp()
        self.graph("n", "")
        self.file("w.safetensors", safetensors(
            "w", [6, 3], [1 if i // 3 == i % 3 and i < 9 else 0
                          for i in range(18)]))
        gray = [[(1,), (3,), (2,)], [(9,), (9,), (9,)]]
        self.file("a.png", make_png.png(gray, make_png.GRAY))
        self.file("rgb.png", make_png.png(make_png.grid(3, 255, 2, 3),
                                          make_png.RGB))
        self.file("wide.png", make_png.png(make_png.grid(1, 255, 2, 4),
                                           make_png.GRAY))

    def graph(self, n, more, names=None):
        self.file("g.weir.yaml", GRAPH % (n, n, n) + more)
        if names is not None:
            self.file("names.txt", names)

    def predict(self, *args, code=0):
        return self.weir("predict", "g.weir.yaml", "--weights", "w.safetensors",
                         *args, code=code)

    def test_one_picture(self):
        """Whether the graph takes any number of examples or just four."""
        for n in ("n", 1, 4):
            self.graph(n, "labels: [ape, bee, cat]\n")
            rows = self.predict("-i", "image=@a.png", "-q").splitlines()
            self.assertEqual(rows[0].split(),
                             ["example", "class", "probability", "name"])
            self.assertEqual([r.split() for r in rows[1:]], [
                ["0", "1", "0.6652", "bee"], ["2", "0.2447", "cat"],
                ["0", "0.0900", "ape"]])
            got = json.loads(self.predict("-i", "image=@a.png", "--json"))
            self.assertEqual((got["class"], got["name"]), (1, "bee"))
            self.assertEqual([t["name"] for t in got["top"]],
                             ["bee", "cat", "ape"])
            self.assertAlmostEqual(sum(t["probability"] for t in got["top"]), 1)
            self.predict("-i", "image=@a.png", "-o", "y=@y.npy")
            self.assertIn("f32[1, 3]\n  [[1, 3, 2]]",
                          self.weir("show", "tensor", "y.npy"))

    def test_some_examples(self):
        self.graph(4, "")
        rows = self.predict("-i", "image=u8:2x2x3=5,1,1,0,0,0,1,1,5,0,0,0",
                            "--top", 1).splitlines()
        self.assertEqual([r.split()[:2] for r in rows[1:]],
                         [["0", "0"], ["1", "2"]])
        # Two inputs filled up to four, from one example and from two.
        self.predict("-i", "image=@a.png", "-i", "label=u8:2=0,1", code=5)
        self.assertIn("W4009", self.err)

    def test_an_output_of_all_examples(self):
        self.graph(4, "")
        text = (self.path / "g.weir.yaml").read_text()
        self.file("g.weir.yaml", text.replace("outputs: [y]",
                                              "outputs: {s: mean(y)}"))
        self.predict("-i", "image=@a.png", code=5)
        self.assertIn("no row for each of 4 examples", self.err)

    def test_pictures_that_do_not_fit(self):
        self.predict("-i", "image=@rgb.png", code=5)
        self.assertIn("input image is u8[n, 2, 3], the value is u8[2, 3, 3]",
                      self.err)
        self.predict("-i", "image=@wide.png", code=5)
        self.assertIn("resize(x, size=[h, w])", self.err)
        self.file("f.weir.yaml", "weir: 1\ninputs: {x: 'f32[2, 3]'}\nnodes:\n"
                  "  y: relu(x)\noutputs: [y]\n")
        self.weir("predict", "f.weir.yaml", "--weights", "w.safetensors", "-i",
                  "x=@a.png", code=5)
        self.assertIn("cast(x, f32)", self.err)

    def test_labels(self):
        self.graph("n", "labels: names.txt\n", "ape\nbee\r\ncat\n")
        self.assertIn("  bee\n", self.predict("-i", "image=@a.png"))
        self.file("other.txt", "x\ny\nz")
        out = self.predict("-i", "image=@a.png", "--labels", "other.txt")
        self.assertIn("  y\n", out)
        self.weir("check", "g.weir.yaml")
        os.unlink(self.path / "names.txt")
        self.weir("check", "g.weir.yaml", code=5)
        self.assertIn("W4001", self.err)
        self.assertRegex(self.err, r"g\.weir\.yaml:\d+:9")
        for names, line in (("ape\n\ncat\n", 2), ("a\nb\x1b[2J\nc\n", 2),
                            ("a\nb\n\xff", 3), ("", 1)):
            self.file("names.txt", names.encode("latin-1"))
            self.weir("check", "g.weir.yaml", code=5)
            self.assertIn("W4039", self.err)
            self.assertIn(f"line {line} ", self.err)
        self.file("names.txt", "a\nb\n")
        for more in (("-i", "image=@a.png"), ("--data", "some")):
            self.predict(*more, code=5)
            self.assertIn("2 labels for an output of 3 classes", self.err)
        for bad, error in (("../names.txt", "W4002"), ("{a: b}", "W1010"),
                           ("[[a], b]", "W1010"), ("[a, '', c]", "W4039")):
            self.graph("n", f"labels: {bad}\n")
            self.weir("check", "g.weir.yaml",
                      code=3 if error == "W1010" else 5)
            self.assertIn(error, self.err)

    def test_export_keeps_labels(self):
        self.graph("n", "labels: names.txt\n", "ape\nit's\n- cat: #1\n")
        os.mkdir(self.path / "out")
        self.weir("export", "g.weir.yaml", "--weights", "w.safetensors", "-o",
                  "out/e.weir.yaml", "-q")
        out = self.weir("predict", "out/e.weir.yaml", "--weights",
                        "w.safetensors", "-i", "image=@a.png")
        self.assertIn("  it's\n", out)
        self.assertIn("  - cat: #1\n", out)

    def test_data_and_top(self):
        self.graph("n", "labels: [ape, bee, cat]\n")
        rows = self.predict("--data", "some", "-q").splitlines()
        self.assertEqual(len(rows), 5)
        self.assertEqual(rows[2].split(),
                         ["1", "1", "0.9998", "2", "bee", "wrong:", "cat"])
        rows = self.predict("--data", "some", "--top", 2, "-q").splitlines()
        self.assertEqual(len(rows), 9)
        line = json.loads(self.predict("--data", "some", "--json",
                                       "-q").splitlines()[1])
        self.assertEqual((line["name"], line["label_name"]), ("bee", "cat"))
        self.assertNotIn("top", line)

    MATRIX = [[1, 0, 1], [0, 0, 0], [0, 1, 1]]

    def test_confusion(self):
        eval_ = ("eval", "g.weir.yaml", "--weights", "w.safetensors",
                 "--confusion")
        self.graph("n", "labels: [ape, bee, cat]\n")
        rows = self.weir(*eval_).splitlines()
        at = next(i for i, r in enumerate(rows) if r.startswith("truth"))
        self.assertEqual([r.split() for r in rows[at:]], [
            ["truth", "0", "1", "2", "right"],
            ["0", "ape", "1", "0", "1", "50.0%"],
            ["1", "bee", "0", "0", "0"],
            ["2", "cat", "0", "1", "1", "50.0%"]])
        lines = self.weir(*eval_, "--json").splitlines()
        got = json.loads(lines[-1])
        self.assertEqual(json.loads(lines[0])["event"], "eval")
        self.assertEqual((got["event"], got["truth"], got["labels"]),
                         ("confusion", self.MATRIX, ["ape", "bee", "cat"]))
        self.assertEqual(self.weir(*eval_, "--format", "csv"),
                         'truth,name,0,1,2\n0,"ape",1,0,1\n1,"bee",0,0,0\n'
                         '2,"cat",0,1,1\n')
        self.weir(*eval_[:-1], "--format", "csv", code=2)
        self.assertIn("--confusion", self.err)
        self.weir("eval", "g.weir.yaml", "--weights", "w.safetensors",
                  "--labels", "x", code=2)
        text = (self.path / "g.weir.yaml").read_text()
        self.file("g.weir.yaml", text.replace("outputs: [y]",
                                              "outputs: [x, y]"))
        self.weir(*eval_, code=2)
        self.assertIn("one output of scores", self.err)
        self.file("g.weir.yaml", text.replace(
            "[0, 2, 2, 0]", "[0, 2, 2, 3]").replace("[loss]", "[m]"))
        self.weir(*eval_, code=5)
        self.assertIn("W4027", self.err)

    def test_confusion_fits_a_narrow_terminal(self):
        self.graph("n", "labels: [ape, bee, cat]\n")
        for width in (80, 24):
            reader, writer = os.openpty()
            fcntl.ioctl(writer, termios.TIOCSWINSZ,
                        struct.pack("4H", 24, width, 0, 0))
            p = subprocess.run([WEIR, "eval", "g.weir.yaml", "--weights",
                                "w.safetensors", "--confusion"], cwd=self.path,
                               env=CLEAN, stdout=writer,
                               stderr=subprocess.DEVNULL, timeout=60)
            os.close(writer)
            out = b""
            try:
                while chunk := os.read(reader, 65536):
                    out += chunk
            except OSError:
                pass  # the other end is closed
            os.close(reader)
            self.assertEqual(p.returncode, 0)
            rows = out.decode().split("truth", 1)[1].splitlines()
            self.assertLessEqual(max(len("truth" + r) for r in rows[:1]), width)
            self.assertLessEqual(max(len(r) for r in rows[1:]), width)
            self.assertEqual("ape" in rows[1], width == 80)


class Same(Case):
    """padding=same is the pads that its definition gives."""

    def test_pads_by_hand(self):
        nodes, outputs = [], []
        for n, (h, w) in enumerate(((1, 2), (5, 4), (7, 8))):
            x = f"x{n}"
            nodes.append(f"  {x}: uniform(shape=[17, 3, {h}, {w}], low=-1)")
            for k in (1, 2, 3, 5):
                nodes += [f"  w{n}_{k}: uniform(shape=[4, 3, {k}, {k}])"]
                for s in (1, 2, 3):
                    pads = []
                    for size in (h, w):
                        total = max((-(-size // s) - 1) * s + k - size, 0)
                        pads.append((total // 2, total - total // 2))
                    (t, b), (l, r) = pads
                    for op, a in (("conv2d", f"{x}, w{n}_{k}, "),
                                  ("max_pool", f"{x}, kernel={k}, "),
                                  ("avg_pool", f"{x}, kernel={k}, ")):
                        name = f"{op}_{n}_{k}_{s}"
                        nodes.append(f"  a_{name}: relu({op}({a}stride={s}, "
                                     "padding=same))")
                        nodes.append(f"  b_{name}: relu({op}({a}stride={s}, "
                                     f"pad=[{t}, {l}, {b}, {r}]))")
                        nodes.append(f"  d_{name}: reduce_max(abs(sub("
                                     f"a_{name}, b_{name})))")
                        outputs.append("d_" + name)
        self.file("same.weir.yaml", "weir: 1\nnodes:\n" + "\n".join(nodes) +
                  f"\n  all: stack({', '.join(outputs)})\n"
                  "  worst: reduce_max(all)\noutputs: [worst]\n")
        for more in ((), ("--ref-kernels",)):
            self.assertIn("worst  f32[]\n  0\n",
                          self.weir("run", "same.weir.yaml", *more))

    def test_blocks(self):
        self.file("b.weir.yaml", """\
weir: 1
dims: [h, w]
import: {nn: std/nn}
inputs: {x: "f32[1, 2, h, w]"}
nodes:
  c: nn.conv(x, filters=3, kernel=4, padding=same)
  p: nn.max_pool(c, kernel=2, padding=same)
  q: nn.avg_pool(p, kernel=3, stride=1, padding=same)
outputs: [c, q]
""")
        out = self.weir("run", "b.weir.yaml", "-i", "x=f32:1x2x5x7=1")
        self.assertIn("c  f32[1, 3, 5, 7]", out)
        self.assertIn("q  f32[1, 3, 3, 4]", out)


class Lenet(Case):
    """Trained for a second, it tells trousers from other clothes."""

    def test_a_picture_has_a_name(self):
        graphs = ROOT / "graphs"
        self.weir("train", graphs / "lenet.weir.yaml", "--checkpoint", "lenet",
                  "--steps", 150, "-p", "lr=5e-3", "-q")
        rows = self.weir("predict", graphs / "lenet.weir.yaml", "--checkpoint",
                         "lenet", "-i", f"image=@{TROUSER}").splitlines()
        self.assertEqual(len(rows), 6)
        self.assertEqual(rows[1].split()[3], "trouser")
        out = self.weir("eval", graphs / "lenet.weir.yaml", "--checkpoint",
                        "lenet", "--confusion")
        self.assertRegex(out, r"\n    9  ankle boot  ")

    def test_a_photo_of_any_size(self):
        graphs = ROOT / "graphs"
        self.weir("train", graphs / "lenet_train.weir.yaml", "--checkpoint",
                  "lenet", "--steps", 120, "-q")
        rows = self.weir("predict", graphs / "lenet_train.weir.yaml",
                         "--checkpoint", "lenet", "-i", f"image=@{TROUSER}")
        self.assertEqual(rows.splitlines()[1].split()[3], "trouser")
        values = self.weir("show", "tensor", TROUSER, "--json")
        data = next(iter(json.loads(values)["outputs"].values()))["data"]
        double = [[tuple(data[y // 2][x // 2]) * 3 for x in range(56)]
                  for y in range(56)]
        self.file("photo.png", make_png.png(double, make_png.RGB,
                                            interlaced=True))
        got = json.loads(self.weir(
            "predict", graphs / "lenet_photo.weir.yaml", "--checkpoint",
            "lenet", "-i", "photo=@photo.png", "--json"))
        self.assertEqual(got["name"], "trouser")
        self.assertEqual(len(got["top"]), 5)


unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
