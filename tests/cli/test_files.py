#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that a graph names: what the command writes, where, and what it never
touches; pipes, links and folders in the way of every file that is read.

  test_files.py WEIR SOURCE_ROOT
"""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

WEIR = os.path.abspath(sys.argv[1])
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}

GRAPH = """\
weir: 1
dims: [n]
inputs: {tokens: 'i32[n, 4]', target: 'i32[n, 4]'}
nodes:
  e: var([9, 8], init=uniform(-1, 1))
  w: var([8, 9], init=uniform(-1, 1))
  logits: matmul(gather(e, tokens), w)
  loss: mean(sparse_softmax_xent(logits, target))
outputs: [logits]
data:
  train: &d
    source: text
    files: a.txt
    text: {level: words, vocabulary: {size: 9, unknown: <unk>%SAVE%}}
    window: {length: 4, target: next}
    batch: 2
train:
  minimize: loss
  optimizer: sgd(lr=0.1)
  steps: 3
  eval: {data: train, metrics: [loss]}
%MORE%
"""
ALL = dict(save="vocabulary/words.txt",
           more="  checkpoint: {dir: ckpt}\n"
                "  summary: {dir: logs, every: 1, csv: run.csv, "
                "jsonl: run.jsonl, graph: true}\n")


def graph(save=None, more=""):
    text = GRAPH.replace("%SAVE%", "" if save is None else f", save: {save}")
    return text.replace("%MORE%\n", more)


def tree(folder):
    """Everything there is: names, kinds, contents, times of change."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        info = path.lstat()
        digest = ""
        if path.is_file() and not path.is_symlink():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(folder))] = (
            info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, digest)
    return found


class Case(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.dir = pathlib.Path(tmp.name) / "work"
        self.dir.mkdir()
        self.put("a.txt", "a b c d e f g h " * 10)

    def put(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def weir(self, *args, code=0, says="", stdin=""):
        p = subprocess.run([WEIR, *map(str, args)], cwd=self.dir, env=CLEAN,
                           timeout=20, capture_output=True, text=True,
                           input=stdin)
        self.assertEqual(p.returncode, code, (args, p.stderr))
        self.assertIn(says, p.stderr)
        return p

    def train(self, text, *args, code=0, says=""):
        self.put("g.weir.yaml", text)
        return self.weir("train", "g.weir.yaml", "-q", *args, code=code,
                         says=says)

    def names(self, folder="."):
        return sorted(str(p.relative_to(self.dir / folder))
                      for p in (self.dir / folder).rglob("*") if p.is_file())


class Places(Case):
    LOGS = ["logs/train/events", "logs/run.csv", "logs/run.jsonl"]

    def holds(self, folder, want):
        self.assertEqual([n.split(".out.")[0] for n in self.names(folder)
                          if ".weir-lock" not in n and "step-" not in n],
                         sorted(want))

    def test_folder_that_the_graph_names(self):
        self.train(graph(**ALL))
        self.holds(".", ["a.txt", "g.weir.yaml", "ckpt/vocabulary/words.txt",
                         *("ckpt/" + n for n in self.LOGS)])
        self.assertIn("ckpt/step-00000003.json", self.names())
        self.weir("eval", "g.weir.yaml", "--data", "train")

    def test_checkpoint_option(self):
        self.train(graph(**ALL), "--checkpoint", "../other")
        self.holds(".", ["a.txt", "g.weir.yaml"])
        self.holds("../other", ["vocabulary/words.txt", *self.LOGS])
        self.assertIn("step-00000003.json", self.names("../other"))

    def test_out_option(self):
        self.train(graph(**ALL), "--out", "../other")
        self.holds(".", ["a.txt", "g.weir.yaml"])
        self.holds("../other", ["vocabulary/words.txt", *self.LOGS])
        self.assertIn("ckpt/step-00000003.json", self.names("../other"))

    def test_options_each_for_its_own(self):
        self.train(graph(**ALL), "--out", "o", "--checkpoint", "c", "--events",
                   "e")
        self.holds("o", ["vocabulary/words.txt"])
        self.holds("e", [n[5:] for n in self.LOGS])
        self.holds("c", [])

    def test_summary_without_a_folder_of_its_own(self):
        self.train(graph(more="  summary: {every: 1, csv: run.csv}\n"),
                   "--out", "o")
        self.holds("o", ["train/events", "run.csv"])

    def test_no_run_folder(self):
        for text in (graph(save="words.txt"),
                     graph(more="  summary: {dir: logs}\n"),
                     graph(more="  summary: {csv: run.csv}\n")):
            p = self.train(text, code=2, says="W1151")
            self.assertIn("--out DIR", p.stderr)
            self.assertEqual(self.names(), ["a.txt", "g.weir.yaml"])

    def test_going_on_replaces_nothing(self):
        self.train(graph(**ALL))
        before = {n: (self.dir / n).read_bytes() for n in self.names()
                  if not n.startswith("g.")}
        self.train(graph(**ALL), "--steps", "6")
        for name, content in before.items():
            self.assertEqual((self.dir / name).read_bytes(), content, name)
        self.assertIn("ckpt/logs/run.1.csv", self.names())


class Names(Case):
    KEYS = {"checkpoint.dir": lambda n: graph(
                more=f"  checkpoint: {{dir: {n}}}\n"),
            "summary.dir": lambda n: graph(
                more=f"  summary: {{dir: {n}}}\n"),
            "summary.csv": lambda n: graph(
                more=f"  summary: {{dir: logs, csv: {n}}}\n"),
            "summary.jsonl": lambda n: graph(
                more=f"  summary: {{dir: logs, jsonl: {n}}}\n"),
            "save": lambda n: graph(save=n)}

    def test_refused(self):
        for key, text in self.KEYS.items():
            names = ["../x", "/tmp/weir-never", ".hidden", "true"]
            if key == "save":  # io/run_folder has the grid
                names += ["a/../../x", "a/.git/x", '"a\\0b"', '"a\\nb"', "null"]
            for name in names:
                with self.subTest(key=key, name=name):
                    self.put("g.weir.yaml", text(name))
                    before = tree(self.dir.parent)
                    p = self.weir("check", "g.weir.yaml", code=3, says="W1150")
                    self.assertIn("g.weir.yaml:", p.stderr)
                    self.assertNotIn("\x1b", p.stderr)
                    self.weir("train", "g.weir.yaml", "--out", "o", code=3,
                              says="W1150")
                    self.assertEqual(tree(self.dir.parent), before)
        for key in ("summary.csv", "summary.jsonl"):
            self.put("g.weir.yaml", self.KEYS[key]("a/b"))
            self.weir("check", "g.weir.yaml", code=3, says="not the name")

    def test_csv_of_a_data_set(self):
        self.put("g.weir.yaml", """\
weir: 1
inputs: {x: 'i32[2]'}
nodes: {y: neg(x)}
outputs: [y]
data: {t: {source: csv, files: a.csv, vocabulary: {x: {save: ../v}}}}
""")
        self.weir("check", "g.weir.yaml", code=3, says="W1150")


    def test_nul_in_paths_that_are_read(self):
        for what in ('root: "a\\0b"', 'm: {source: text, files: "a\\0b"}'):
            text = graph().replace("data:\n", "data:\n  " + what + "\n")
            self.put("g.weir.yaml", text)
            self.weir("show", "data", "g.weir.yaml", code=3, says="NUL")
        for key in ('map: "a\\0b"', 'map: {graph: "a\\0b"}',
                    'text: {vocabulary: "a\\0b"}',
                    'text: {vocabulary: {file: "a\\0b"}}'):
            text = "\n".join(line for line in graph().split("\n")
                             if "text:" not in line or "map" in key)
            self.put("g.weir.yaml", text.replace(
                "    batch: 2\n", f"    batch: 2\n    {key}\n"))
            self.weir("show", "data", "g.weir.yaml", code=3, says="NUL")
        self.put("g.weir.yaml", 'weir: 1\nweights: "a\\0b"\n'
                 "nodes: {y: 'var([2])'}\noutputs: [y]\n")
        self.weir("check", "g.weir.yaml", code=5, says="NUL")
        self.put("g.weir.yaml", 'weir: 1\nimport: {m: "a\\0b"}\n'
                 "nodes: {y: 'zeros([2])'}\noutputs: [y]\n")
        self.weir("check", "g.weir.yaml", code=3, says="NUL")


class InTheWay(Case):
    """Links, pipes, folders and others' files where a graph would write."""

    def unchanged(self, text, *args, code, says):
        self.put("g.weir.yaml", text)
        self.put("../outside/file", "kept")
        before = tree(self.dir.parent / "outside")
        mine = {n: v for n, v in tree(self.dir).items()}
        self.weir("train", "g.weir.yaml", "-q", *args, code=code, says=says)
        self.assertEqual(tree(self.dir.parent / "outside"), before)
        after = tree(self.dir)
        for name, was in mine.items():
            if name in after and (was[0] & 0o170000) != 0o040000:
                self.assertEqual(after[name], was, name)

    def test_vocabulary(self):
        for name, make in (
                ("file", lambda p: p.write_text("mine")),
                ("link", lambda p: p.symlink_to("../../outside/file")),
                ("gone", lambda p: p.symlink_to("../../outside/new")),
                ("pipe", os.mkfifo), ("folder", os.mkdir)):
            with self.subTest(name):
                (self.dir / "o").mkdir(exist_ok=True)
                make(self.dir / "o" / name)
                self.unchanged(graph(save=name), "--out", "o",
                               code=6 if name == "file" else 5,
                               says="W5009" if name == "file" else "W4002")

    def test_graph_itself(self):
        self.unchanged(graph(save="g.weir.yaml"), "--out", ".", code=6,
                       says="W5009")

    def test_link_on_the_way(self):
        os.symlink("../outside", self.dir / "link")
        os.makedirs(self.dir / "o")
        os.symlink("../../outside", self.dir / "o" / "link")
        self.unchanged(graph(more="  checkpoint: {dir: link}\n"), code=5,
                       says="W4042")
        self.unchanged(graph(more="  checkpoint: {dir: link/new}\n"), code=5,
                       says="W4042")
        self.unchanged(graph(save="link/new"), "--out", "o", code=5,
                       says="W4002")
        self.unchanged(graph(more="  summary: {dir: link}\n"), "--out", "o",
                       code=5, says="W4002")
        self.weir("eval", "g.weir.yaml", code=5)
        # The command line may: the user typed it.
        self.train(graph(save="new"), "--out", "link")
        self.assertTrue((self.dir.parent / "outside/new").is_file())

    def test_summaries_take_another_name(self):
        for name, make in (
                ("a", lambda p: p.symlink_to("../../outside/file")),
                ("b", os.mkfifo), ("c", os.mkdir),
                ("d", lambda p: p.write_text("mine"))):
            (self.dir / "o").mkdir(exist_ok=True)
            make(self.dir / "o" / name)
            self.unchanged(
                graph(more=f"  summary: {{every: 1, csv: {name}}}\n"),
                "--out", "o", code=0, says="")
            self.assertIn(f"o/{name}.1", self.names())

    def test_folder_of_others(self):
        self.put("src/main.c", "mine")
        self.unchanged(graph(more="  checkpoint: {dir: src}\n"), code=5,
                       says="weir did not make it")
        self.assertEqual(self.names("src"), ["main.c"])
        self.train(graph(), "--checkpoint", "src")

    def test_lock(self):
        for make in (os.mkfifo, os.mkdir,
                     lambda p: p.symlink_to("../../outside/file")):
            with self.subTest(make):
                lock = self.dir / "c" / ".weir-lock"
                lock.parent.mkdir(exist_ok=True)
                make(lock)
                self.unchanged(graph(), "--checkpoint", "c", code=5,
                               says="it cannot be locked")
                lock.rmdir() if lock.is_dir() and not lock.is_symlink() \
                    else lock.unlink()


class Checkpoints(Case):
    def test_links_out_of_the_folder(self):
        self.train(graph(), "--checkpoint", "c")
        outside = self.dir.parent / "outside"
        outside.mkdir()
        for name in ("step-00000003.json",
                     "step-00000003-00000-of-00001.safetensors"):
            path = self.dir / "c" / name
            path.rename(outside / name)
            for make in (lambda p: p.symlink_to(outside / name), os.mkfifo):
                make(path)
                for args in (("eval", "g.weir.yaml", "--checkpoint", "c"),
                             ("predict", "g.weir.yaml", "--checkpoint", "c",
                              "--data", "train"),
                             ("export", "g.weir.yaml", "--checkpoint", "c",
                              "-o", "x.weir.yaml"),
                             ("train", "g.weir.yaml", "--checkpoint", "c",
                              "--steps", "9"),
                             ("train", "g.weir.yaml", "--init",
                              "c/step-00000003-00000-of-00001.safetensors")
                             if path.suffix == ".safetensors" and
                             path.is_fifo() else ("version",),
                             ("checkpoint", "show", "c"),
                             ("checkpoint", "verify", "c"),
                             ("checkpoint", "diff", "c", "c"),
                             ("checkpoint", "convert", "c", "w.npz"),
                             ("checkpoint", "show",
                              "c/step-00000003.json")):
                    with self.subTest(name=name, args=args):
                        p = self.weir(*args, code=5 if len(args) > 1 else 0)
                        if len(args) > 1:
                            self.assertRegex(p.stdout + p.stderr,
                                             "symbolic link|is a pipe")
                path.unlink()
            (outside / name).rename(path)
        self.assertEqual(self.weir("checkpoint", "verify", "c").returncode, 0)


class Readers(Case):
    """No command but train writes for a graph, and no pipe that a graph names
    stops one."""

    def test_they_write_nothing(self):
        self.train(graph(**ALL))
        self.put("g.weir.yaml", graph(**dict(ALL, save="other.txt")))
        before = tree(self.dir)
        data = ("--data", "train")
        ckpt = ("--checkpoint", "ckpt")
        g = "g.weir.yaml"
        inputs = ("-i", "tokens=i32:1x4=1", "-i", "target=i32:1x4=1")
        for args in (("check", g), ("check", g, "--format", "json"),
                     ("show", "graph", g), ("show", "graph", g, "--json"),
                     ("show", "graph", g, "--after", "train"),
                     ("show", "data", g), ("show", "data", g, "train"),
                     ("show", "data", g, "--json"),
                     ("place", g), ("place", g, "--json"),
                     ("place", g, "--format", "html"),
                     ("place", g, "--critical"),
                     ("run", g, *inputs), ("run", g, *inputs, "--json"),
                     ("bench", g, "--runs", "2", "--warmup", "0", *inputs),
                     ("eval", g, *data), ("eval", g, *data, *ckpt),
                     ("predict", g, *data, *ckpt),
                     ("predict", g, *ckpt, *inputs),
                     ("predict", g, *ckpt, "--sample", "3", "--prompt", "a"),
                     ("checkpoint", "show", "ckpt"),
                     ("checkpoint", "verify", "ckpt"),
                     ("checkpoint", "diff", "ckpt", "ckpt"),
                     ("explain", "W1150"), ("doctor",), ("version",),
                     ("help",)):
            with self.subTest(args):
                p = subprocess.run([WEIR, *args], cwd=self.dir, env=CLEAN,
                                   timeout=20, capture_output=True, text=True)
                self.assertEqual(p.returncode, 0, (args, p.stderr))
                self.assertEqual(tree(self.dir), before, args)

    def test_pipes_that_a_graph_names(self):
        os.mkfifo(self.dir / "pipe")
        cases = {
            "import": "weir: 1\nimport: {m: pipe}\n"
                      "nodes: {y: 'zeros([2])'}\noutputs: [y]\n",
            "weights": "weir: 1\nweights: pipe\nnodes: {y: 'var([2])'}\n"
                       "outputs: [y]\n",
            "data": graph().replace("a.txt", "pipe"),
            "vocabulary": graph().replace("size: 9, unknown: <unk>",
                                          "file: pipe"),
            "map": graph().replace("    batch: 2\n",
                                   "    batch: 2\n    map: pipe\n")}
        for name, text in cases.items():
            with self.subTest(name):
                self.put("g.weir.yaml", text)
                command = ("show", "data")
                if name in ("import", "weights"): command = ("check",)
                code = 3 if name == "import" else 5
                self.weir(*command, "g.weir.yaml", code=code, says="pipe")

    def test_pipes_on_the_command_line(self):
        """Without a writer a pipe would stop the command for ever: it is
        refused where a plain file is wanted, and none of them hangs."""
        os.mkfifo(self.dir / "pipe")
        self.put("g.weir.yaml", graph())
        self.put("t.weir.yaml", "weir: 1\ninputs: {x: 'f32[2]'}\n"
                 "nodes: {y: neg(x)}\noutputs: [y]\n")
        for args in (("check", "pipe"), ("run", "pipe"), ("train", "pipe"),
                     ("place", "pipe"), ("show", "graph", "pipe"),
                     ("show", "tensor", "pipe"),
                     ("run", "t.weir.yaml", "-i", "x=@pipe"),
                     ("run", "t.weir.yaml", "-i", "x=f32:2=1", "--expect",
                      "y=@pipe"),
                     ("train", "g.weir.yaml", "--init", "pipe"),
                     ("eval", "g.weir.yaml", "--weights", "pipe"),
                     ("predict", "g.weir.yaml", "--weights", "pipe", "--data",
                      "train"),
                     ("train", "g.weir.yaml", "--checkpoint", "pipe"),
                     ("eval", "g.weir.yaml", "--checkpoint", "pipe"),
                     ("train", "g.weir.yaml", "--out", "pipe",
                      "--events", "pipe"),
                     ("checkpoint", "show", "pipe"),
                     ("checkpoint", "diff", "pipe", "pipe"),
                     ("place", "t.weir.yaml", "--cluster", "pipe"),
                     ("place", "t.weir.yaml", "--cluster", "@pipe"),
                     ("place", "t.weir.yaml", "--costs", "pipe"),
                     ("place", "t.weir.yaml", "--verify", "pipe"),
                     ("place", "t.weir.yaml", "--diff", "pipe", "pipe"),
                     ("run", "t.weir.yaml", "-i", "x=f32:2=1", "--plan",
                      "pipe", "--in-process", "worker=2"),
                     ("bench", "t.weir.yaml", "--baseline", "pipe",
                      "--runs", "1")):
            with self.subTest(args):
                p = subprocess.run([WEIR, *args], cwd=self.dir, env=CLEAN,
                                   timeout=10, capture_output=True, text=True,
                                   stdin=subprocess.DEVNULL)
                self.assertIn(p.returncode, (2, 3, 4, 5), (args, p.stderr))
                self.assertRegex(p.stderr, r"error\[W\d{4}\]")

    def test_a_shells_pipe_is_read(self):
        """<(...) and standard input give pipes that end."""
        self.put("t.weir.yaml", "weir: 1\nnodes: {y: 'zeros([2])'}\n"
                 "outputs: [y]\n")
        plan = self.weir("place", "t.weir.yaml", "--cluster", "worker=2",
                         "--json").stdout
        self.put("plan.json", plan)
        for line in ("cat t.weir.yaml | weir run - -q",
                     "weir run t.weir.yaml -q --in-process worker=2 --plan "
                     "<(sleep 0.1; cat plan.json)"):
            p = subprocess.run(["bash", "-c", f'weir() {{ {WEIR} "$@"; }}; '
                                + line], cwd=self.dir, env=CLEAN,
                               capture_output=True, text=True, timeout=20)
            self.assertEqual((p.returncode, p.stdout),
                             (0, "y  f32[2]\n  [0, 0]\n"), p.stderr)


if __name__ == "__main__":
    unittest.main(argv=["test_files"], verbosity=1)
