#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints whose shards are written by the tasks that own the variables:
the same bits whoever writes and reads them; tasks and drivers that are killed
in each phase of a save; disks that are full; damage.

  test_shards.py WEIR SOURCE_ROOT [CASE...] [all]

`all`: each task in each phase. No verdict depends on a time limit: those here
end a test that hangs.
"""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from proxy import Proxy, fields  # noqa: E402

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
SANITIZED = "CLI_SANITIZED" in os.environ
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
ALL = "all" in sys.argv[3:]
HANG = 200  # seconds: an end for what would hang
BEAT = "1s" if SANITIZED else "200ms"  # lost after five
# Each task has a variable and its slot.
GRAPH = """weir: 1
params: {size: 1000}
inputs: {x: "f32[n]"}
dims: [n]
data: {train: {source: memory, values: {x: [1, 2, 3, 4]}, batch: 2}}
nodes:
  va: var([size], init=ones()) @ /job:worker/task:0
  vb: var([size], init=ones()) @ /job:worker/task:1
  loss: mul(add(mean(mul(va, va)), mean(mul(vb, vb))), mean(x))
outputs: [loss]
train:
  minimize: loss
  optimizer: "momentum(lr=0.1, momentum=0.9)"
  checkpoint: {every: 2 steps, keep: 3}
"""
LARGE = ("-p", "size=2500000")  # 10 MB each: more than a piece
STEPS = 8


class Task:
    """A process that serves, and the proxy in front of it."""

    def __init__(self, test, index, root=None, limit=None, beat=BEAT):
        self.index, self.name, self.strike = index, f"worker:{index}", None
        words = ["--checkpoint-root", root] if root else []

        def prepare():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        self.p = test.start("task", "--job", "worker", "--index", index,
                            "--cluster", "worker=2", "--listen", "127.0.0.1:0",
                            "--threads", 1, "--heartbeat", beat, *words,
                            preexec_fn=prepare if limit else None)
        line = self.p.stderr.readline()
        m = re.search(r"listening at 127.0.0.1:(\d+)", line)
        test.assertTrue(m, line)
        threading.Thread(target=self.p.stderr.read, daemon=True).start()
        self.proxy = Proxy(("127.0.0.1", int(m.group(1))), self.on_message)
        test.addCleanup(self.proxy.close)

    def on_message(self, kind, body, up):
        return self.strike is None or self.strike(kind, body, up)

    def kill(self):
        self.proxy.refuse()  # as the system would
        self.p.kill()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-shards-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name).resolve()
        self.graph = self.path / "g.weir.yaml"
        self.graph.write_text(GRAPH)

    def start(self, *args, **more):
        p = subprocess.Popen([WEIR, *map(str, args)], cwd=ROOT, env=ENV,
                             text=True, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, **more)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def weir(self, *args, code=0):
        p = subprocess.run([WEIR, *map(str, args)], cwd=ROOT, env=ENV,
                           timeout=HANG, capture_output=True, text=True)
        self.assertEqual(p.returncode, code, f"{args}: {p.stderr}")
        return p.stdout + p.stderr

    def train(self, to, *more, steps=STEPS, graph=None, code=0):
        return self.weir("train", graph or self.graph, "--checkpoint",
                         self.path / to, "--steps", steps, *more, code=code)

    def cluster(self, tasks, beat=BEAT):
        path = self.path / "cluster.yaml"
        path.write_text("worker: %s\n" % json.dumps(
            [t.proxy.address for t in tasks]))
        return "--cluster", path, "--heartbeat", beat

    def same(self, a, b):
        self.weir("checkpoint", "diff", self.path / a, self.path / b)

    def step(self, to):
        """The step that a resume finds: the newest that is sound."""
        text = self.weir("checkpoint", "show", self.path / to, "--json")
        return json.loads(text)["manifest"]["step"]

    def files(self, to, end):
        return sorted(f for f in os.listdir(self.path / to) if f.endswith(end))

    def is_clean(self, to):
        """Nothing is left of saves that came to nothing."""
        self.assertEqual(self.files(to, ".tmp"), [])
        shards = []
        for name in self.files(to, ".json"):
            manifest = json.loads((self.path / to / name).read_text())
            shards += [s["file"] for s in manifest["shards"]]
        self.assertEqual(self.files(to, ".safetensors"), sorted(shards))


class Bits(Case):
    def test_many_one_and_others(self):
        """Saved by four tasks, by one process, by four other tasks."""
        graph = "graphs/mlp_train.weir.yaml"
        many = ("--placer", "random:1", "--task-threads", 1, "--local")
        self.train("one", steps=6, graph=graph)
        self.train("it", *many, "ps=2,worker=2", steps=2, graph=graph)
        shards = self.files("it", ".safetensors")
        self.assertGreater(len(shards), 1)
        self.train("it", steps=4, graph=graph)
        self.train("it", *many, "ps=1,worker=3", steps=6, graph=graph)
        self.assertEqual(self.step("it"), 6)
        self.same("one", "it")
        self.weir("checkpoint", "verify", self.path / "it")
        self.is_clean("it")

    def test_seen_by_all_some_and_none(self):
        """A task writes and reads where it may and sees the folder; the bytes
        of the others go through the driver. The values are the same."""
        self.train("one", *LARGE, steps=4)
        (self.path / "other").mkdir()
        for name, roots, sends, sets in (
                ("all", (self.path, self.path / "all"), [0, 0], [0, 0]),
                ("some", (self.path, None), [0, 4], [0, 2]),
                ("none", (self.path / "other", self.path / "missing"),
                 [5, 4], [3, 2])):
            with self.subTest(name):
                tasks = [Task(self, i, root) for i, root in enumerate(roots)]
                counts = [{"checkpoint_send": 0, "variable_set": 0}
                          for _ in tasks]

                def count(seen):
                    def see(kind, body, up):
                        if kind in seen:
                            seen[kind] += 1
                        return True
                    return see

                for t, seen in zip(tasks, counts):
                    t.strike = count(seen)
                words = (*LARGE, *self.cluster(tasks))
                self.train(name, *words, steps=2)
                # Two tensors of 10 MB, in pieces of at most 8 MiB, and on the
                # first task the number of steps.
                self.assertEqual([c["checkpoint_send"] for c in counts], sends)
                self.assertEqual([c["variable_set"] for c in counts], [0, 0])
                self.train(name, *words, steps=4)
                self.assertEqual([c["variable_set"] for c in counts], sets)
                self.same("one", name)
                self.is_clean(name)
                for t in tasks:
                    t.p.kill()
        self.assertEqual(os.listdir(self.path / "other"), [])

    def test_steps_go_on(self):
        """While a shard is on its way, steps change the variables, and the
        shard has the values of its own step."""
        # Answers wait here, so the tasks are lost late.
        tasks = [Task(self, i, self.path, beat="10s") for i in range(2)]
        begun, stepped = threading.Event(), threading.Event()

        def shard(kind, body, up):
            if kind == "checkpoint_write":
                begun.set()
            if kind == "checkpoint_reply" and begun.is_set():
                # It waits until the next step is committed.
                return stepped.wait(HANG)
            return True

        def steps(kind, body, up):
            if kind == "step_reply" and fields(body).get(1, 0) > 2:
                # The next step waits until the save has begun.
                return begun.wait(HANG)
            if kind in ("commit", "run_step") and begun.is_set():
                stepped.set()
            return True

        tasks[1].strike, tasks[0].strike = shard, steps
        self.train("it", *self.cluster(tasks, "10s"), steps=4)
        self.assertTrue(stepped.is_set())
        self.train("one", steps=4)
        for step in (2, 4):
            a, b = (self.path / n / f"step-{step:08}.json"
                    for n in ("one", "it"))
            self.weir("checkpoint", "diff", a, b)


class Kills(Case):
    """A task, or the driver, is killed in each phase of the second save: the
    first is whole, and the next run goes on from it, or from the second."""

    PHASES = ("checkpoint_hold", "checkpoint_write", "checkpoint_send",
              "checkpoint_reply")

    def kill(self, phase, victim):
        to = f"{phase}-{victim}"
        root = None if phase == "checkpoint_send" else self.path
        tasks = [Task(self, i, root) for i in range(2)]
        holds, struck = [], threading.Event()
        driver = []

        def strike(kind, body, up):
            it = fields(body) if kind.startswith("checkpoint") else {}
            if kind == "checkpoint_hold" and 1 in it: # it does not drop one
                holds.append(it[1])
            # A reply of a shard that was written tells its bytes.
            if (kind != phase or len(holds) < 2 or struck.is_set() or
                    kind == "checkpoint_reply" and 4 not in it):
                return True
            struck.set()
            if victim == "driver":
                driver[0].kill()
            else:
                tasks[victim].kill()
            return True

        tasks[victim if victim != "driver" else 0].strike = strike
        driver.append(self.start(
            "train", self.graph, "--checkpoint", self.path / to, "--steps",
            STEPS, *self.cluster(tasks)))
        _, err = driver[0].communicate(timeout=HANG)
        self.assertTrue(struck.is_set(), err)
        if victim != "driver":
            self.assertEqual(driver[0].returncode, 138, err)
            self.assertIn("W7020", err)
        for t in tasks:
            t.p.kill()
            t.p.wait()
        self.assertIn(self.step(to), (2, 4))
        self.train(to, "--local", "worker=2")
        self.same("one", to)
        self.is_clean(to)

    def test_each_phase(self):
        self.train("one")
        for phase in self.PHASES:
            for victim in (0, 1, "driver") if ALL else (1, "driver"):
                with self.subTest(phase=phase, victim=victim):
                    self.kill(phase, victim)


class Disks(Case):
    def test_full_on_one_owner(self):
        """A file of one task cannot grow: its error names the task and the
        file, and the last whole generation stays."""
        self.train("one", steps=4)
        self.train("it", "--local", "worker=2", steps=2)
        tasks = [Task(self, 0, self.path), Task(self, 1, self.path, 4096)]
        err = self.train("it", *self.cluster(tasks), steps=4, code=7)
        self.assertRegex(err, r"error\[W6005\]: worker:1: .*"
                         r"it/step-00000004[-.0-9a-z]*\.safetensors\.tmp")
        self.assertEqual(self.step("it"), 2)
        self.is_clean("it")
        self.train("it", "--local", "worker=2", steps=4)
        self.same("one", "it")

    def test_damage(self):
        """A bit, a shard that is missing, a shard of another generation: named,
        exit 5, and where there is an older generation it is taken."""
        self.train("it", "--local", "worker=2", steps=4)
        name = "step-00000004-00001-of-00002.safetensors"

        def flip(file, at):
            data = bytearray(file.read_bytes())
            data[at] ^= 16
            file.write_bytes(data)

        it = self.path / "bad"
        for says, harm in (
                (name, lambda: flip(it / name, 100)),
                (name, lambda: flip(it / name, -100)),
                (name, lambda: (it / name).unlink()),
                (name, lambda: shutil.copy(
                    it / name.replace("04-", "02-"), it / name)),
                ("step-00000004.json",
                 lambda: flip(it / "step-00000004.json", 60))):
            with self.subTest(says=says):
                shutil.rmtree(it, ignore_errors=True)
                shutil.copytree(self.path / "it", it)
                harm()
                err = self.weir("checkpoint", "verify", it, code=5)
                self.assertIn("damaged", err)
                self.assertIn(says, err)
                for tasks in ((), ("--local", "worker=2")):
                    err = self.train("bad", *tasks, steps=2)
                    self.assertRegex(err, "event=warning id=W40")
                    self.assertIn(says, err)
        for older in it.glob("step-00000002*.json"): # saved again at the end
            older.unlink()
        for tasks in ((), ("--local", "worker=2")):
            err = self.train("bad", *tasks, steps=2, code=5)
            self.assertIn("W4040", err)


if __name__ == "__main__":
    sys.argv[1:] = [w for w in sys.argv[3:] if w != "all"]
    unittest.main(verbosity=2)
