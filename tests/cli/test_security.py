#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SECURITY.md, sentence by sentence: each promise has the test that holds it.

  test_security.py WEIR SOURCE_ROOT

A test names its promise by the decorator; test_every_promise compares them with
the page, so that a promise without a test fails, and a test without a promise.
"""
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import unittest

WEIR = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
SANITIZED = os.environ.get("CLI_SANITIZED")
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
PROMISED = {}

MODEL = """\
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
  %(root)strain:
    source: text
    files: %(files)s
    text: {level: words, vocabulary: {size: 9, unknown: <unk>%(save)s}}
    window: {length: 4, target: next}
    batch: 2
train:
  minimize: loss
  optimizer: sgd(lr=0.1)
  steps: 2
  eval: {data: train, metrics: [loss]}
"""


def promise(text):
    def mark(test):
        PROMISED[test.__name__] = " ".join(text.split())
        return test
    return mark


def model(save=None, more="", files="a.txt", root=""):
    return MODEL % {"save": "" if save is None else f", save: {save}",
                    "files": files, "root": root} + more


class Security(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.top = pathlib.Path(tmp.name)
        self.dir = self.top / "work"
        self.dir.mkdir()
        self.put("a.txt", "a b c d e f g h " * 10)
        self.put("../outside/file", "kept")

    def put(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def weir(self, *args, code=None, says="", text=None, **more):
        if text is not None:
            self.put("g.yaml", text)
        p = subprocess.run([WEIR, *map(str, args)], cwd=self.dir, env=CLEAN,
                           capture_output=True, timeout=60,
                           stdin=subprocess.DEVNULL, **more)
        p.err = p.stderr.decode(errors="replace")
        self.assertIn(p.returncode, (0, 1, 2, 3, 4, 5, 6, 7, 138), p.err)
        if code is not None:
            self.assertEqual(p.returncode, code, (args, p.err))
        self.assertIn(says, p.err)
        return p

    def files(self):
        return {str(p.relative_to(self.top)): p.read_bytes()
                for p in self.top.rglob("*")
                if p.is_file() and not p.is_symlink()}

    def test_every_promise(self):
        page = (ROOT / "SECURITY.md").read_text()
        section = re.search(r"^## Promises.*?\n(.*?)^## ", page,
                            re.M | re.S).group(1)
        told = [" ".join(x.split()) for x in re.split(r"^- ", section,
                                                      flags=re.M)]
        self.assertEqual(told[0], "", "a promise is an item of the list")
        self.assertEqual(set(told[1:]), set(PROMISED.values()))
        self.assertEqual(len(told) - 1, len(set(told[1:])))
        tests = {n for n in dir(self) if n.startswith("test_")}
        self.assertEqual(tests - {"test_every_promise"}, set(PROMISED))

    @promise("A graph cannot run a command, open a network connection or load "
             "code.")
    def test_runs_nothing(self):
        # What is not linked cannot be called. The command starts tasks for
        # --local and openssl for certificates, and the loader of modules opens
        # the network's for clusters; a process of ps-lite asks the system which
        # address is its own: each from one file, which no graph reaches.
        from_one = {"fork": "spawn", "execv": "spawn",
                    "posix_spawnp": "openssl", "dlopen": "base_module.c",
                    "socket": "own_host", "connect": "own_host",
                    "getaddrinfo": "own_host"}
        forbidden = {"system", "popen", "fork", "vfork", "execv", "execve",
                     "execvp", "execl", "execlp", "posix_spawn",
                     "posix_spawnp", "socket", "connect", "bind", "accept",
                     "getaddrinfo", "gethostbyname", "dlopen", "dlmopen"}
        p = subprocess.run(["nm", "-D", "--undefined-only", WEIR],
                           capture_output=True, text=True, check=True)
        names = {line.split()[-1].split("@")[0]
                 for line in p.stdout.splitlines()}
        self.assertTrue(names & {"openat", "openat64"})
        if not SANITIZED:
            self.assertLessEqual(names & forbidden, set(from_one))
            build = pathlib.Path(WEIR).parent
            objects = [*build.glob("weir.p/*.o"), *build.parent.glob("lib*.a")]
            p = subprocess.run(["nm", "-A", "--undefined-only", *objects],
                               capture_output=True, text=True, check=True)
            lines = [x.split() for x in p.stdout.splitlines() if " U " in x]
            uses = [(x[-1], x[0]) for x in lines if x[-1] in forbidden]
            self.assertEqual({name for name, _ in uses}, set(from_one))
            for name, where in uses:
                self.assertIn(from_one[name], where)
        for line in ("source: 'sh -c true'", "source: 'http://localhost/'"):
            self.weir("check", "g.yaml", code=3,
                      text=model().replace("source: text", line))

    @promise("Of all commands only `weir train` writes files that a graph "
             "names; the others write what their options name, and nothing "
             "else.")
    def test_readers_write_nothing(self):
        more = ("  checkpoint: {dir: ckpt}\n"
                "  summary: {dir: logs, every: 1, csv: a.csv, jsonl: b}\n")
        self.weir("train", "g.yaml", "-q", code=0, text=model("v.txt", more))
        self.put("g.yaml", model("w.txt", more))
        before = self.files()
        feed = ("-i", "tokens=i32:1x4=1", "-i", "target=i32:1x4=1")
        for args in (("check",), ("show", "graph"), ("show", "data"),
                     ("place",), ("run", *feed), ("eval",),
                     ("predict", "--checkpoint", "ckpt", "--data", "train"),
                     ("bench", "--runs", "1", "--warmup", "0", *feed)):
            n = 2 if args[0] == "show" else 1
            self.weir(*args[:n], "g.yaml", *args[n:], code=0)
            self.assertEqual(self.files(), before, args)
        self.weir("export", "g.yaml", "--checkpoint", "ckpt", "-o",
                  "out/x.weir.yaml")
        (self.dir / "out").mkdir()
        self.weir("export", "g.yaml", "--checkpoint", "ckpt", "-o",
                  "out/x.weir.yaml", code=0)
        new = set(self.files()) - set(before)
        self.assertTrue(all(n.startswith("work/out/x.") for n in new), new)

    @promise("""Files that a graph names are written beneath the run folder:
             `--out DIR`, else `--checkpoint DIR`, else the folder that
             `checkpoint: {dir: ...}` names beneath the working directory.
             Without a run folder such a graph is refused.""")
    def test_run_folder(self):
        text = model("v.txt",
                     "  checkpoint: {dir: ckpt}\n  summary: {dir: l}\n")
        for args, folder in ((("--out", "o", "--checkpoint", "c"), "o"),
                             (("--checkpoint", "d"), "d"), ((), "ckpt")):
            before = set(self.files())
            self.weir("train", "g.yaml", "-q", *args, code=0, text=text)
            new = set(self.files()) - before - {"work/g.yaml"}
            self.assertIn(f"work/{folder}/v.txt", new)
            allowed = (f"work/{folder}/", "work/c/" if "c" in args else "?")
            self.assertTrue(all(n.startswith(allowed) for n in new), new)
        before = set(self.files())
        for text in (model("v.txt"), model(more="  summary: {dir: l}\n")):
            self.weir("train", "g.yaml", code=2, says="W1151", text=text)
            self.assertEqual(set(self.files()), before)

    @promise("The names of such files are relative paths: absolute paths, "
             "`..`, parts that begin with a dot, control characters and NUL "
             "bytes are refused.")
    def test_names(self):
        for name in ("/tmp/weir-never", "../x", "a/../../x", ".x", "a/.x",
                     '"a\\nb"', '"a\\e[2J"', '"a\\0b"'):
            for text in (model(name),
                         model(more=f"  checkpoint: {{dir: {name}}}\n"),
                         model(more=f"  summary: {{dir: {name}}}\n"),
                         model(more=f"  summary: {{dir: l, csv: {name}}}\n"),
                         model(more=f"  summary: {{dir: l, jsonl: {name}}}\n")):
                self.weir("train", "g.yaml", "--out", "o", code=3,
                          says="W1150", text=text)
        self.assertEqual(set(self.files()),
                         {"work/g.yaml", "work/a.txt", "outside/file"})

    @promise("No symbolic link is followed on the way from the run folder to a "
             "file that a graph names.")
    def test_links(self):
        (self.dir / "o").mkdir()
        os.symlink("../../outside", self.dir / "o/link")
        os.symlink("../outside", self.dir / "link")
        for text in (model("link/x"),
                     model(more="  checkpoint: {dir: link}\n"),
                     model(more="  summary: {dir: link/sub}\n")):
            self.weir("train", "g.yaml", "--out", "o", code=5, says="link",
                      text=text)
        self.weir("train", "g.yaml", code=5, says="link",
                  text=model(more="  checkpoint: {dir: link}\n"))
        self.assertEqual(os.listdir(self.top / "outside"), ["file"])

    @promise("No file is replaced or cut short because a graph names it, and "
             "no pipe, device or socket is opened.")
    def test_nothing_is_replaced(self):
        self.put("o/mine", "kept")
        os.symlink("../../outside/file", self.dir / "o/link")
        os.mkfifo(self.dir / "o/pipe")
        before = self.files()
        for name in ("mine", "link", "pipe"):
            self.assertIn(self.weir(
                "train", "g.yaml", "--out", "o", "-q",
                text=model(name)).returncode, (5, 6))
            self.weir("train", "g.yaml", "--out", "o", "-q", code=0,
                      text=model(more=f"  summary: {{every: 1, csv: {name}, "
                                      "jsonl: mine}\n"))
        self.weir("train", "g.yaml", "--out", ".", code=6,
                  text=model("g.yaml"))
        after = self.files()
        for name, content in before.items():
            self.assertEqual(after[name], content, name)
        self.assertTrue((self.dir / "o/pipe").is_fifo())
        self.assertTrue((self.dir / "o/link").is_symlink())

    @promise("A folder of checkpoints that only the graph names is used if it "
             "is new, empty, or was made by weir.")
    def test_folder_of_checkpoints(self):
        self.put("src/main.c", "kept")
        (self.dir / "empty").mkdir()
        for name, code in (("src", 5), ("new", 0), ("new", 0), ("empty", 0)):
            self.weir("train", "g.yaml", "-q", code=code,
                      text=model(more=f"  checkpoint: {{dir: {name}}}\n"))
        self.assertEqual(os.listdir(self.dir / "src"), ["main.c"])

    @promise("""Data files and weights lie beneath the data root: links, `..`,
             pipes, devices and files with several hard links are refused.""")
    def test_data_root(self):
        os.symlink("a.txt", self.dir / "link")
        os.mkfifo(self.dir / "pipe")
        os.link(self.dir / "a.txt", self.dir / "hard")
        for name in ("link", "pipe", "hard", "../outside/file", "/etc/hostname",
                     '"a.txt\\0"'):
            p = self.weir("show", "data", "g.yaml", text=model(files=name))
            self.assertIn(p.returncode, (3, 5), p.err)
            p = self.weir("check", "g.yaml", text="weir: 1\nnodes: {y: "
                          f"'var([2])'}}\noutputs: [y]\nweights: {name}\n")
            self.assertIn(p.returncode, (3, 5), p.err)
        p = self.weir("show", "data", "g.yaml", code=5,
                      text=model(files="null", root="root: /dev\n  "))
        self.assertIn("device", p.err)

    @promise("Imports lie beneath the folder of the graph that is loaded.")
    def test_imports(self):
        self.put("../outside/m.yaml", "weir: 1\n")
        os.symlink("../outside/m.yaml", self.dir / "link.yaml")
        for name in ("../outside/m.yaml", str(self.top / "outside/m.yaml"),
                     "link.yaml"):
            self.weir("check", "g.yaml", code=3, says="W111", text="weir: 1\n"
                      f"import: {{m: {name}}}\nnodes: {{y: 'zeros([2])'}}\n"
                      "outputs: [y]\n")

    @promise("Manifests and shards of checkpoints are plain files of their "
             "folder; links are refused.")
    def test_checkpoints(self):
        self.weir("train", "g.yaml", "-q", "--checkpoint", "c", code=0,
                  text=model())
        for path in sorted((self.dir / "c").glob("step-*")):
            moved = self.top / "outside" / path.name
            path.rename(moved)
            path.symlink_to(moved)
            self.weir("eval", "g.yaml", "--checkpoint", "c", code=5,
                      says="link")
            self.weir("checkpoint", "verify", "c", code=5)
            path.unlink()
            moved.rename(path)
        self.weir("eval", "g.yaml", "--checkpoint", "c", code=0)

    @promise("A pipe that a graph or a checkpoint names does not stop a "
             "command.")
    def test_pipes(self):
        os.mkfifo(self.dir / "pipe")
        for text in (model(files="pipe"), "weir: 1\nimport: {m: pipe}\n",
                     "weir: 1\nweights: pipe\nnodes: {y: 'var([2])'}\n"):
            self.weir("check", "g.yaml", text=text)
            self.weir("show", "data", "g.yaml", text=text)
        self.weir("train", "g.yaml", "-q", "--checkpoint", "c", code=0,
                  text=model())
        for name in [p.name for p in (self.dir / "c").iterdir()]:
            path = self.dir / "c" / name
            path.rename(self.top / name)
            os.mkfifo(path)
            self.weir("eval", "g.yaml", "--checkpoint", "c",
                      code=0 if name == ".weir-lock" else 5)
            self.weir("train", "g.yaml", "--checkpoint", "c", code=5)
            path.unlink()
            (self.top / name).rename(path)

    @promise("Bad input ends with an error that `weir explain` knows and with "
             "an exit code of `docs/cli.md`.")
    def test_bad_input(self):
        codes = {int(c) for line in re.findall(
            r"^\| ([\d, ]+) \|", (ROOT / "docs/cli.md").read_text(), re.M)
            for c in line.split(",")}
        known = self.weir("show", "errors").stdout.decode()
        graphs = sorted((ROOT / "tests/bad/graphs").glob("*.weir.yaml"))
        self.assertGreater(len(graphs), 200)
        for path in graphs[::8]:  # graph/bad takes all of them
            if path.read_text().startswith("# expect: ok"):
                continue
            p = self.weir("check", path)
            if p.returncode == 0:  # a warning is expected
                continue
            self.assertIn(p.returncode, codes - {0, 1, 8}, path)
            for name in re.findall(r"error\[(W\d+)\]", p.err):
                self.assertIn(name, known)

    @promise("Excerpts of input in messages cannot steer a terminal.")
    def test_terminal(self):
        for text in ('weir: 1\nnodes: {y: "nope\\e[2J\\a"}\n',
                     'weir: 1\nnodes: {"y\\e]0;x\\a": "zeros([2])"}\n',
                     "weir: 1\nnodes:\n  y: no\u009b31mpe(x\u202e)\n"):
            p = self.weir("check", "g.yaml", code=3, text=text)
            self.assertNotRegex(p.err, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")

    @promise("""By default a graph has at most 64 MiB of YAML, 64 levels of
             nesting, 1,000,000 nodes and tensors of rank 8, whose sizes fit 63
             bits.""")
    def test_limits(self):
        self.weir("check", "g.yaml", code=5, says="the limit is 67108864",
                  text="#" * (64 << 20) + "\n")
        for text, error in (
                ("weir: 1\nx-a: " + "[" * 65 + "]" * 65 + "\n", "W1003"),
                ("weir: 1\nnodes:\n  r:\n    repeat: {i: 0..2000000}\n"
                 "    nodes:\n      h[i]: zeros([1])\n", "W1014"),
                ("weir: 1\ninputs: {x: 'f32[1,1,1,1,1,1,1,1,1]'}\n"
                 "nodes: {y: neg(x)}\noutputs: [y]\n", "W2003"),
                ("weir: 1\nnodes: {y: 'zeros([4294967296, 4294967296])'}\n"
                 "outputs: [y]\n", "W2001")):
            if SANITIZED and error == "W1014":  # graph/load_limits has it
                continue
            self.weir("check", "g.yaml", code=3, says="error[" + error,
                      text=text)

    @promise("One graph, with its passes and programs, takes at most 1 GiB by "
             "default, values, weights, data and placing aside; `--limit "
             "memory=BYTES` bounds all memory of a command instead, and "
             "`--timeout` its time.")
    def test_memory_and_time(self):
        text = ("weir: 1\ninputs: {x: 'f32[] = 1'}\nnodes:\n"
                "  a: fill(shape=[5000, 5000], value=1.0)\n  b: mul(a, x)\n"
                "outputs: [b]\n")
        self.weir("run", "g.yaml", "-q", "--limit", "memory=8MiB", code=7,
                  says="W6002", text=text)
        loop = ("weir: 1\ninputs: {x: 'f32[] = 0'}\nnodes:\n  y:\n"
                "    while:\n      carry: {i: x}\n      cond: less(i, 1e9)\n"
                "      next: {i: 'add(i, 0)'}\noutputs: [y]\n")
        p = self.weir("run", "g.yaml", "-q", "--timeout", "200ms", text=loop)
        self.assertEqual(p.returncode, 138, p.err)
        # A small file that expands for ever (the default limit: cli_errors).
        blocks = "weir: 1\nblocks:\n" + "".join(
            f"  b{i}:\n    in: [x]\n    nodes: {{l: b{i + 1}(x), r: b{i + 1}(l)}}\n"
            "    out: r\n" for i in range(40))
        blocks += ("  b40: {in: [x], out: neg(x)}\ninputs: {x: 'f32[] = 1'}\n"
                   "nodes: {y: b0(x)}\noutputs: [y]\n")
        self.weir("check", "g.yaml", "--limit", "memory=16MiB", code=7,
                  says="W6002", text=blocks)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    unittest.main(argv=["test_security"], verbosity=1)
