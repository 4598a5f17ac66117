#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which worker computes how much, and what a training between graphs says of it
at its end.

  test_account.py WEIR SOURCE_ROOT

A worker is slow because the map that reads its data waits: each process has a
map of its own under the same name. Shares are compared with speeds that the
same run measured, so a busy machine changes both. The model counts how often it
saw each sample: the gradient of w[id] is -1, and the learning rate 1.
"""
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import unittest

WEIR = os.path.abspath(sys.argv[1])
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
HANG = 300  # seconds: an end for what would hang
SAMPLES, EPOCHS = 159, 2
GRAPH = """weir: 1
dims: [n]
inputs: {id: 'i32[n]'}
nodes:
  w: var([SAMPLES], init=zeros())
  loss: neg(reduce_sum(gather(w, id)))
outputs: [loss]
data:
  train:
    source: memory
    values: {id: IDS}
    map: {graph: read.weir.yaml}
    shuffle: {buffer: 8, seed: 2}
    batch: 1
    prefetch: 0
    shard: by_load
train:
  minimize: loss
  optimizer: sgd(lr=1)
  mode: async
  epochs: EPOCHS
  log: 1000 epochs # nobody waits for all before the end of an epoch
""".replace("SAMPLES", str(SAMPLES)).replace(
    "IDS", str(list(range(SAMPLES)))).replace("EPOCHS", str(EPOCHS))
READ = """weir: 1
dims: [n]
inputs: {id: 'i32[n]'}
nodes:
  wait: task(id, cost_ns=NS, out_bytes=1)
  out: add(id, mul(cast(wait, i32), 0))
outputs: {id: out}
"""


def addresses(count):
    """Some that nobody else has: of all of 127.0.0.0/8."""
    host = ".".join(str(random.randint(1, 254)) for _ in range(3))
    return ",".join(f"127.{host}:{20000 + i}" for i in range(count))


def values(folder, name):
    """The f32 values of a variable of the newest checkpoint of one file."""
    file, = folder.glob("*.safetensors")
    data = file.read_bytes()
    size, = struct.unpack_from("<Q", data)
    about = json.loads(data[8:8 + size])[name]
    begin, end = about["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}f",
                         data[8 + size + begin:8 + size + end])


class Account(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-account-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def put(self, name, text, ms):
        folder = self.dir / name
        folder.mkdir()
        (folder / "m.weir.yaml").write_text(text)
        (folder / "read.weir.yaml").write_text(
            READ.replace("NS", str(ms * 1000000)))
        return folder / "m.weir.yaml"

    def start(self, name, *words):
        with open(self.dir / f"{name}.log", "w") as log, \
                open(self.dir / f"{name}.out", "w") as out:
            p = subprocess.Popen([WEIR, "train", *map(str, words)], env=ENV,
                                 cwd=self.dir, stdout=out, stderr=log)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def log(self, name):
        return (self.dir / f"{name}.log").read_text()

    def job(self, text, *more, slow_ms=24, ends=("w0", "w1", "w2", "ps")):
        """The account of a job of three workers, the last of them slower. The
        server comes when all of them wait for it."""
        fast, slow = self.put("fast", text, 8), self.put("slow", text, slow_ms)
        common = ["--cluster", "ps=1,worker=3", "--addresses", addresses(4),
                  "--insecure", "--threads", "1", "--isa", "generic", *more]
        all_ = {}
        for i in (0, 1, 2):
            words = ["--checkpoint", "c", "--json"] if i == 0 else []
            all_[f"w{i}"] = self.start(
                f"w{i}", slow if i == 2 else fast, *common, *words,
                "--job", "worker", "--index", i)
        for name in ("w0", "w1", "w2"):
            while "the chief is there" not in self.log(name) and \
                    all_[name].poll() is None:
                time.sleep(0.01)
        all_["ps"] = self.start("ps", fast, *common, "--job", "ps",
                                "--index", 0)
        for name in ends:
            self.assertEqual(all_[name].wait(HANG), 0, self.log(name))
        lines = [json.loads(line)
                 for line in (self.dir / "w0.out").read_text().splitlines()]
        account, = (x for x in lines if x["event"] == "account")
        return account

    def counts(self, account, runs, samples):
        """Each run counts once, each update is at the servers, and the model
        has seen each sample as often as there were epochs."""
        self.assertEqual(account["runs"], runs)
        self.assertEqual(account["earlier"], 0)
        self.assertEqual(sum(w["runs"] for w in account["workers"]), runs)
        self.assertEqual(account["applied"], [runs])
        self.assertEqual(account["updates_least"], runs)
        self.assertEqual(account["updates_most"], runs)
        self.assertEqual(sum(account["staleness"]), runs)
        self.assertAlmostEqual(sum(w["share"] for w in account["workers"]), 1)
        self.assertEqual(values(self.dir / "c", "w"), samples)

    def test_by_load(self):
        account = self.job(GRAPH)
        self.counts(account, SAMPLES * EPOCHS, (EPOCHS,) * SAMPLES)
        speeds = [w["examples_per_s"] for w in account["workers"]]
        for w in account["workers"]:
            have, want = w["share"], w["examples_per_s"] / sum(speeds)
            self.assertLess(abs(have / want - 1), 0.15, account)
        self.assertLess(speeds[2], min(speeds[:2]), account)
        self.assertGreater(account["examples_per_s"], 0)
        self.assertGreater(account["alone_per_s"], 0)
        self.assertAlmostEqual(
            account["speedup"],
            account["examples_per_s"] / account["alone_per_s"], places=5)

    def test_equal(self):
        text = GRAPH.replace("by_load", "equal").replace(
            f"epochs: {EPOCHS}", "epochs: 1")
        account = self.job(text, slow_ms=16)
        self.counts(account, SAMPLES, (1,) * SAMPLES)
        for w in account["workers"]:
            self.assertEqual(w["runs"], SAMPLES // 3, account)

    def test_no_stale_update(self):
        text = GRAPH.replace("mode: async", "mode: async(max_staleness=0)") \
            .replace(f"epochs: {EPOCHS}", "steps: 40")
        account = self.job(text)
        self.assertEqual(account["staleness"][0], 40)
        self.assertEqual(account["staleness_most"], 0)
        self.assertEqual(account["updates_most"], 40)
        self.assertIn(" stale", self.log("ps"))

    def test_stale_updates_are_smaller(self):
        """An update that is s behind is the s-th part of one. The account has
        them by 0, 1, 2-3, 4-7, ...: between these the model's sum must lie."""
        text = GRAPH.replace("mode: async",
                             "mode: async(staleness_lr=inverse)") \
            .replace(f"epochs: {EPOCHS}", "steps: 60")
        account = self.job(text)
        counts = account["staleness"]
        self.assertEqual(sum(counts), 60)
        most = sum(n / max(1, 2 ** b // 2) for b, n in enumerate(counts))
        least = sum(n / max(1, 2 ** b - 1) for b, n in enumerate(counts))
        total = sum(values(self.dir / "c", "w"))
        self.assertLessEqual(least - 1e-3, total, account)
        self.assertGreaterEqual(most + 1e-3, total, account)

    def test_evict(self):
        """A worker that is stuck is out, and its runs are dealt again."""
        text = GRAPH.replace("mode: async", "mode: async\n  evict_after: 5s") \
            .replace(f"epochs: {EPOCHS}", "epochs: 1")
        account = self.job(text, slow_ms=60000, ends=("w0", "w1", "ps"))
        self.counts(account, SAMPLES, (1,) * SAMPLES)
        self.assertGreater(account["returned"], 0)
        self.assertEqual(account["workers"][2]["runs"], 0)
        # Who waited for it, as long as it was stuck, stays.
        self.assertEqual(re.findall(r"worker:\d is out", self.log("w0")),
                         ["worker:2 is out"])

    def test_threads(self):
        for shard in ("by_load", "equal"):
            graph = self.put(shard, GRAPH.replace("by_load", shard), 0)
            p = self.start(shard, graph, "--in-process", "ps=1,worker=3",
                           "--json", "--checkpoint", shard + "/c")
            self.assertEqual(p.wait(HANG), 0, self.log(shard))
            out = (self.dir / f"{shard}.out").read_text()
            account, = (x for x in map(json.loads, out.splitlines())
                        if x["event"] == "account")
            runs = [w["runs"] for w in account["workers"]]
            self.assertEqual(sum(runs), SAMPLES * EPOCHS)
            self.assertEqual(sum(account["staleness"]), SAMPLES * EPOCHS)
            self.assertEqual(values(self.dir / shard / "c", "w"),
                             (EPOCHS,) * SAMPLES)
            if shard == "equal":
                self.assertEqual(runs, [SAMPLES * EPOCHS // 3] * 3)

    def test_log(self):
        graph = self.put("log", GRAPH, 0)
        p = self.start("log", graph, "--local", "ps=1,worker=2")
        self.assertEqual(p.wait(HANG), 0, self.log("log"))
        text = self.log("log")
        runs = re.findall(r"event=worker name=worker:\d runs=(\d+)", text)
        self.assertEqual(sum(map(int, runs)), SAMPLES * EPOCHS, text)
        self.assertRegex(text, rf"event=account runs={SAMPLES * EPOCHS} "
                         r"earlier=0 .*speedup=\d.* staleness=\"?0")

    def test_refused(self):
        between = ["--in-process", "ps=1,worker=2"]
        for k, (text, words, says) in enumerate((
                (GRAPH.replace("mode: async", "mode: sync"), between,
                 "shard: by_load is for"),
                (GRAPH.replace("  mode: async\n", ""), [],
                 "shard: by_load is for"),
                (GRAPH.replace("by_load", "none"), between,
                 "shard: none has no effect"))):
            name = f"bad{k}"
            p = self.start(name, self.put(name, text, 0), *words)
            self.assertNotEqual(p.wait(HANG), 0)
            self.assertIn("W4024", self.log(name))
            self.assertIn(says, self.log(name))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
