#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replicas between graphs over processes: a ps and workers, started by
--local or by hand, killed and started again.

  test_between.py WEIR SOURCE_ROOT CASE...

Sync ends with the bits of one process, whatever dies; the other modes count
each batch once. No verdict depends on a time limit: those here end a test that
hangs.
"""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from job import account  # noqa: E402

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
HANG = 300  # seconds: an end for what would hang
STEPS = 60
GRAPH = """weir: 1
params: {hidden: 32, lr: 0.05}
dims: [n]
inputs: {x: 'f32[n, 2]', label: 'i32[n]'}
nodes:
  w1: var([2, hidden], init=uniform(-1, 1))
  b1: var([hidden], init=zeros())
  w2: var([hidden, 2], init=uniform(-1, 1))
  h: dropout(tanh(add(matmul(x, w1), b1)), keep=0.8)
  logits: matmul(h, w2)
  loss: mean(sparse_softmax_xent(logits, label))
  acc: mean(cast(equal(argmax(logits, axis=-1), cast(label, i64)), f32))
outputs: [logits]
data:
  train: &d
    source: memory
    values:
      x: [[0, 0], [1, 1], [0.2, 0.1], [0.9, 0.8], [0.1, 0.3], [0.7, 0.9],
          [0.3, 0.2], [0.8, 1], [0, 0.4], [1, 0.6], [0.25, 0.05]]
      label: [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    shuffle: {buffer: 6, seed: 2}
    batch: 4
  test:
    <<: *d
    shuffle: false
train:
  minimize: loss
  optimizer: adam(lr=lr)
  clip: {global_norm: 0.3}
  eval: {data: test, every: 20, metrics: [loss, acc]}
  checkpoint: {every: 20, keep: 3}
"""
SYNC = "sync(aggregate=2)"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-between-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.graph = self.dir / "m.weir.yaml"
        self.graph.write_text(GRAPH)

    def words(self, folder, *more):
        return [WEIR, "train", self.graph, "--checkpoint", folder, "--isa",
                "generic", "--threads", 1, *more]

    def weir(self, *args, code=0):
        p = subprocess.run([WEIR, *map(str, args)], cwd=self.dir, env=ENV,
                           timeout=HANG, capture_output=True, text=True)
        self.assertEqual(p.returncode, code,
                         f"{args}: {p.stderr}\n{p.stdout[-2000:]}")
        return p

    def start(self, words, name="job", env=None):
        """A process with its outputs in a file; ended with the test."""
        log = open(self.dir / f"{name}.log", "a")
        p = subprocess.Popen([str(w) for w in words], cwd=self.dir,
                             env=env or ENV, stdout=log, stderr=log)
        log.close()
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def log(self, name="job"):
        return (self.dir / f"{name}.log").read_text()

    def ends(self, p, code=0, name="job"):
        self.assertEqual(p.wait(HANG), code, self.log(name))

    def one(self, steps=STEPS, **sets):
        """The folder of the same training in one process."""
        words = self.words("one", "--steps", steps, "-q")
        for key, value in sets.items():
            words += ["--set", f"train.{key}={value}"]
        self.weir(*words[1:])
        return "one"

    def same(self, a, b):
        p = self.weir("checkpoint", "diff", a, b)
        self.assertIn(" 0 different", p.stdout + p.stderr)

    def newest(self, folder):
        p = self.weir("checkpoint", "show", folder, "--json")
        return json.loads(p.stdout)

    def parts(self, supervisor):
        """The processes of --local: {"worker:1": pid}."""
        found = {}
        for pid in children(supervisor.pid):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            words = words.decode().split("\0")
            if "--job" in words and "--index" in words:
                job = words[words.index("--job") + 1]
                found[f"{job}:{words[words.index('--index') + 1]}"] = pid
        return found

    def waits(self, p, what, name="job"):
        """Until the log has |what|, or the process has ended."""
        while not re.search(what, self.log(name)) and p.poll() is None:
            time.sleep(0.01)
        self.assertRegex(self.log(name), what)

    def stop(self, p, name):
        """Ends a job of --local by a signal, once it makes steps; the last."""
        def told():
            return self.log(name).count(" step=")
        end, before = time.monotonic() + HANG, told()
        while told() < before + 3:
            self.assertIsNone(p.poll(), self.log(name))
            self.assertLess(time.monotonic(), end, self.log(name))
            time.sleep(0.01)
        p.send_signal(signal.SIGINT)
        self.ends(p, 130, name)
        return self.newest(name)["manifest"]["step"]


def addresses(count):
    """Some that nobody else has: of all of 127.0.0.0/8."""
    host = ".".join(str(random.randint(1, 254)) for _ in range(3))
    return [f"127.{host}:{20000 + i}" for i in range(count)]


def children(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(n) for n in text.split()]


class Local(Case):
    def train(self, folder, cluster, mode, *more, steps=STEPS):
        p = self.start(self.words(folder, "--local", cluster, "--mode", mode,
                                  "--steps", steps, *more), folder)
        self.ends(p, name=folder)
        self.assertNotIn("not there to hear it", self.log(folder))

    def test_sync_has_the_bits_of_one_process(self):
        one = self.one(accumulate=2)
        for cluster in ("ps=1,worker=2", "ps=2,worker=3", "ps=1,worker=1,chief=1"):
            folder = cluster.replace(",", "-")
            self.train(folder, cluster, SYNC)
            self.same(one, folder)
            account(self, self.log(folder), 2 * STEPS, int(cluster[3]))

    def test_batches_weigh_by_examples(self):
        """The last batch of an epoch has three examples, the others four."""
        words = "--set", "train.average=examples"
        one = self.one(accumulate=2, average="examples")
        self.train("weighed", "ps=2,worker=2", SYNC, *words)
        self.same(one, "weighed")
        self.weir(*self.words("equal", "--steps", STEPS, "-q", "--set",
                              "train.accumulate=2")[1:])
        p = self.weir("checkpoint", "diff", one, "equal", code=1)
        self.assertNotIn(" 0 different", p.stdout + p.stderr)

    def test_one_worker_is_never_stale(self):
        one = self.one(steps=STEPS // 2)
        for mode in ("async(staleness_lr=inverse)",
                     "bounded(staleness=1, staleness_lr=inverse)"):
            folder = mode[:5]
            self.train(folder, "ps=2,worker=1", mode, steps=STEPS // 2)
            self.same(one, folder)

    def test_the_others_count_each_batch_once(self):
        for mode in ("async", "bounded(staleness=2)"):
            folder = mode[:5]
            self.train(folder, "ps=2,worker=2", mode)
            self.assertIn(f"step={STEPS}", self.log(folder))
            account(self, self.log(folder), STEPS, 2)
            p = self.weir("eval", self.graph, "--checkpoint", folder)
            self.assertRegex(p.stdout + p.stderr, r"acc")

    def test_it_goes_on_with_other_numbers(self):
        self.train("g", "ps=1,worker=2", SYNC, steps=STEPS // 2)
        self.train("g", "ps=2,worker=3", SYNC)
        self.assertIn("the job goes on with step 31", self.log("g"))
        self.train("g", "ps=1,worker=1", SYNC)
        self.assertIn("nothing was trained", self.log("g"))
        self.same(self.one(accumulate=2), "g")
        words = ["--local", "ps=1,worker=1", "--mode"]
        p = self.start(self.words("h", "--generations", "g/generations", *words,
                                  "async", "--restarts", 0), "other")
        self.ends(p, 138, "other")
        self.assertIn("a job in another mode", self.log("other"))
        p = self.start(self.words("g", *words, SYNC, "--resume", "none"), "new")
        self.ends(p, 5, "new")
        self.assertIn("there are generations already", self.log("new"))

    def test_a_signal_ends_it(self):
        p = self.start(self.words("s", "--local", "ps=1,worker=2", "--mode",
                                  "async", "--steps", 100000000))
        self.waits(p, "step=100 ")
        p.send_signal(signal.SIGINT)
        self.ends(p, 130)
        self.weir("eval", self.graph, "--checkpoint", "s")

    def test_a_signal_ends_a_chief_without_servers(self):
        at = [f"unix:{self.dir}/{i}" for i in range(2)]
        cluster = self.dir / "cluster.yaml"
        cluster.write_text(f"ps: {json.dumps(at[:1])}\n"
                           f"worker: {json.dumps(at[1:])}\n")
        p = self.start(self.words("x", "--cluster", cluster, "--job", "worker",
                                  "--index", 0, "--mode", "async"))
        self.waits(p, "the chief is there")
        p.send_signal(signal.SIGINT)
        self.ends(p, 130)
        self.assertFalse(list((self.dir / "x").glob("step-*")))


class Bad(Case):
    def test_options(self):
        p = self.weir("train", self.graph, "--restarts", 2, code=2)
        self.assertIn("--restarts is for replicas between graphs", p.stderr)
        p = self.weir("train", self.graph, "--mode", "async", "--cluster",
                      "ps=1,worker=2", code=2)
        self.assertIn("--job NAME --index N say which", p.stderr)
        p = self.weir("train", self.graph, "--mode", "async", "--local",
                      "ps=1,worker=1", "--placer", "search", code=2)
        self.assertIn("--placer has no effect on replicas", p.stderr)
        p = self.weir("train", self.graph, "--mode", "async", "--local",
                      "worker=2", code=2)
        self.assertIn("need job ps and job worker", p.stderr)
        self.graph.write_text(GRAPH + "  replicate: between_graph\n")
        p = self.weir("train", self.graph, "--local", "worker=2", code=2)
        self.assertIn("need job ps and job worker", p.stderr)
        p = self.weir("train", self.graph, "--mode", "async", "--cluster",
                      "ps=1,worker=2", "--job", "worker", "--index", 5,
                      "--addresses", "unix:/tmp/a,unix:/tmp/b,unix:/tmp/c",
                      code=2)
        self.assertIn("no task worker:5", p.stderr)

    def test_summaries(self):
        """In sync a row has the numbers of one process: of runs (loss, h, w1),
        and of updates, on one server, or all of them for a norm."""
        names = ["acc", "h", "loss", "w1", "train/grad_norm", "train/step",
                 "train/w1/apply", "train/learning_rate"]
        summary = ("train.summary={histograms: ['kind:var', h, w1, "
                   "grad/h/add/reshape_18], scalars: [" + ", ".join(names) +
                   "], graph: false, every: 20, csv: s.csv}")
        words = self.words("one", "--steps", 40, "--set", summary, "-q")[1:]
        self.weir(*words, "--events", "one/logs", "--set", "train.accumulate=2")
        want = self.rows("one", names)
        self.assertEqual([row[0] for row in want], ["20", "40"])
        for servers in (1, 2):
            words = self.words(f"s{servers}", "--steps", 40, "--set", summary,
                               "--local", f"ps={servers},worker=2")[1:]
            self.weir(*words, "--events", f"s{servers}/logs", "--mode", SYNC)
            self.assertEqual(self.rows(f"s{servers}", names), want)
        events = b"".join(f.read_bytes() for f in
                          (self.dir / "s2/logs/train").iterdir())
        for tag in (b"\x02w1", b"\x01h", b"reshape_18"):
            self.assertGreaterEqual(events.count(tag), 2, tag)
        p = self.weir(*words, "--events", "x", "--mode", "async", "--set",
                      "train.summary={histograms: [train/w1/apply]}", code=3)
        self.assertIn("train/w1/apply on parameter servers: the servers "
                      "compute it, and keep it", p.stderr)

    def rows(self, folder, names):
        """Steps of a csv file: the number, then the scalars."""
        rows = [line.split(",") for line in
                (self.dir / folder / "logs/s.csv").read_text().splitlines()]
        self.assertEqual(rows[0][:2 + len(names)], ["step", "time", *names])
        return [[r[0], *r[2:2 + len(names)]] for r in rows[1:] if r[2]]

    def test_a_loss_that_is_not_finite_ends_the_job(self):
        self.graph.write_text(GRAPH.replace(
            "loss: mean(", "bad: log(sub(mean(logits), 1000))\n  loss: add(bad, "
            "mean(").replace("logits, label))\n  acc", "logits, label)))\n  acc"))
        p = self.start(self.words("n", "--local", "ps=1,worker=2", "--mode",
                                  SYNC, "--steps", STEPS))
        self.ends(p, 6)
        self.assertIn("error[W5020]", self.log())
        self.assertRegex(self.log(), "the first was made by .*bad")


class First(Case):
    """First values that the graph does not have."""

    def test_a_checkpoint_of_one_process(self):
        self.one(30, accumulate=2)
        shutil.copytree(self.dir / "one", self.dir / "f")
        self.one(200, accumulate=2)
        words = self.words("f", "--local", "ps=2,worker=2", "--steps", 200,
                           "--heartbeat", "200ms", "--mode")
        p = self.start([*words, SYNC, "--resume", "none"], "new")
        self.ends(p, 5, "new")
        self.assertIn("f: there are checkpoints already", self.log("new"))
        p = self.start([*words, "async"], "other")
        self.ends(p, 5, "other")
        self.assertIn("has read 60 batches", self.log("other"))
        p = self.start([*words, SYNC], "f")
        self.waits(p, "first values of the chief, version 30", "f")
        for who in ("ps:1", "worker:0"):  # where it is not over by then
            pid = self.parts(p).get(who)
            with contextlib.suppress(ProcessLookupError):
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
        self.ends(p, name="f")
        self.same("one", "f")

    def test_a_file_of_weights(self):
        """One of its variables is not trained: workers are told of it too."""
        self.weir(*self.words("a", "--steps", 9, "-q")[1:])
        self.weir("export", self.graph, "--checkpoint", "a", "-o", "a.weir.yaml")
        self.graph.write_text(GRAPH + "  trainable: {w1: false}\n")
        init = ["--steps", 20, "-q", "--seed", 3, "--init", "a.safetensors"]
        self.weir(*self.words("one", "--set", "train.accumulate=2", *init)[1:])
        self.weir(*self.words("f", "--local", "ps=2,worker=2", "--mode", SYNC,
                              *init)[1:])
        self.same("one", "f")


class Kills(Case):
    """Each part is killed while the job runs, and a signal ends it then; sync
    ends with the same bits."""

    def kill(self, who, kills=2):
        p = self.start(self.words("k", "--local", "ps=1,worker=2", "--mode",
                                  SYNC, "--steps", 100000000, "--restarts",
                                  100, "--heartbeat", "200ms"), "k")
        chance = random.Random(who)
        killed = 0
        self.waits(p, "step=", "k")
        while killed < kills:
            self.assertIsNone(p.poll(), self.log("k"))
            time.sleep(0.05 + chance.random() / 4)
            pid = self.parts(p).get(who)
            if pid is None:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
                self.waits(p, "(?s)" + "is started again.*" * killed, "k")
        step = self.stop(p, "k")
        self.same(self.one(step, accumulate=2), "k")

    def test_a_worker(self):
        self.kill("worker:1")

    def test_the_server(self):
        self.kill("ps:0")

    def test_the_chief(self):
        self.kill("worker:0")


class Random(Case):
    """Any part at any time; CLI_KILLS of them, counted."""
    KILLS = int(os.environ.get("CLI_KILLS", "12"))

    def storm(self, folder, mode):
        """Its last step."""
        p = self.start(self.words(folder, "--local", "ps=2,worker=2", "--mode",
                                  mode, "--steps", 100000000, "--restarts",
                                  100000, "--heartbeat", "200ms"), folder)
        chance, counts = random.Random(mode), {}
        self.waits(p, "step=", folder)
        while sum(counts.values()) < self.KILLS:
            self.assertIsNone(p.poll(), self.log(folder))
            time.sleep(0.02 + chance.random() / 3)
            parts = self.parts(p)
            if not parts:
                continue
            who = chance.choice(sorted(parts))
            try:
                os.kill(parts[who], signal.SIGKILL)
                counts[who] = counts.get(who, 0) + 1
            except ProcessLookupError:
                pass
        step = self.stop(p, folder)
        print(mode, "killed:", counts)
        return step

    def test_sync_has_the_same_bits(self):
        step = self.storm("s", SYNC)
        self.same(self.one(step, accumulate=2), "s")

    def test_async_counts_all_steps(self):
        """To the end of a job that goes on from there."""
        step = self.storm("a", "async") + 100
        p = self.start(self.words("a", "--local", "ps=2,worker=2", "--mode",
                                  "async", "--steps", step), "a")
        self.ends(p, name="a")
        self.assertIn(f" step={step} ", self.log("a"))
        account(self, self.log("a"), step, 2)
        self.weir("eval", self.graph, "--checkpoint", "a")


class ByHand(Case):
    def test_a_cluster_file(self):
        names = [("ps", 0), ("worker", 0), ("worker", 1), ("worker", 2)]
        at = [f"unix:{self.dir}/{i}" for i in range(4)]
        cluster = self.dir / "cluster.yaml"
        cluster.write_text(f"ps: {json.dumps(at[:1])}\n"
                           f"worker: {json.dumps(at[1:])}\n")
        processes = {}
        for job, index in reversed(names):
            name = f"{job}{index}"
            processes[name] = self.start(
                self.words("c", "--cluster", cluster, "--job", job, "--index",
                           index, "--mode", SYNC, "--steps", STEPS), name)
        for name, p in processes.items():
            self.ends(p, name=name)
        self.same(self.one(accumulate=2), "c")


    def test_tf_config(self):
        for chief in (True, False):
            folder = f"tf-{chief}"
            at = addresses(4)
            cluster = {"ps": at[:1], "worker": at[1:3]}
            roles = [("ps", 0), ("worker", 0), ("worker", 1)]
            if chief:
                cluster["chief"] = at[3:]
                roles.append(("chief", 0))
            processes = {}
            for role, index in roles:
                config = {"cluster": cluster,
                          "task": {"type": role, "index": index}}
                env = ENV | {"TF_CONFIG": json.dumps(config)}
                name = f"{folder}-{role}{index}"
                processes[name] = self.start(
                    self.words(folder, "--cluster", "tf-config", "--mode", SYNC,
                               "--steps", STEPS), name, env)
            for name, p in processes.items():
                self.ends(p, name=name)
            self.same(self.one(accumulate=2), folder)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
