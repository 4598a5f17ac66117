#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs between graphs whose processes are killed, stopped and cut off at random
points, and whose disks are full. A script starts each killed task again with its
own command line.

  test_storm.py WEIR SOURCE_ROOT CASE...
  CLI_KILLS=200 CLI_CUTS=200 CLI_SEED=7 test_storm.py ...   more, or another storm

Sync ends with the bits of an undisturbed run. Async: what is applied is what is
acknowledged, each run once. Each fault is counted, and a count of zero fails. No
verdict depends on a time limit: those here end a test that hangs.
"""
import os
import random
import re
import resource
import signal
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_between as between  # noqa: E402
from job import account, HANG, Job  # noqa: E402

SANITIZED = "CLI_SANITIZED" in os.environ
SEED = int(os.environ.get("CLI_SEED", "1"))
KILLS = int(os.environ.get("CLI_KILLS", "6"))
CUTS = int(os.environ.get("CLI_CUTS", "20"))
BEAT = "1s" if SANITIZED else "200ms"
BEAT_S = 1 if SANITIZED else 0.2
LOST_S = 6 * BEAT_S  # then a silent process is lost
OUT_S = 17 * BEAT_S  # and then a worker is out
SYNC = between.SYNC
# Values of more than 8 KiB go by their own connections.
# Who misses the end looks for it after so long.
AWAY = ["--start-timeout", "60s" if SANITIZED else "20s"]
GRAPH = between.GRAPH.replace("hidden: 32", "hidden: 2100").replace(
    "every: 20", "every: 500")


class Case(between.Case):
    ENV = between.ENV

    def setUp(self):
        super().setUp()
        self.graph.write_text(GRAPH)

    def same_bits(self, job, steps):
        """The job ended with the values of one process."""
        self.one(steps, accumulate=2)
        self.same("one", job.dir / job.folder)

    def show(self, job, *kinds):
        """The counts of each fault; none may be zero."""
        print(job.mode, "counts:", {k: job.counts.get(k, 0) for k in kinds},
              flush=True)
        for kind in kinds:
            self.assertGreater(job.counts.get(kind, 0), 0, kind)

    def applied(self, job, steps):
        """Each run counts once at each server, and none beyond."""
        for name in job.names:
            if name.startswith("ps"):
                self.assertRegex(job.log(name), f"version {steps}, ", name)


class Kills(Case):
    """Any process at any point."""

    def storm(self, mode, kills):
        """Kills in rounds of some steps, for a job must not end before them.
        """
        chance = random.Random(f"{SEED} {mode}")
        job = Job(self, "k", mode, 400, servers=2, workers=3, beat=BEAT,
                  more=AWAY)
        whom = ["ps:0", "ps:1", "worker:0", "worker:1", "worker:2"]
        plan = (whom * kills)[:kills]
        chance.shuffle(plan)
        job.start()
        while plan:
            if job.over():  # it had its steps: the next round goes on
                job.finish()
                job.steps += 400
                job.start()
            time.sleep(chance.random() * 0.3)
            if job.dead and chance.random() < 0.7:
                job.again()
                if chance.random() < 0.5:
                    job.progress()
            if job.kill(plan[-1]):
                plan.pop()
            else:
                job.again()
        job.finish()
        kinds = ["kill ps", "kill worker", "kill chief"]
        self.show(job, *(kinds if kills >= 5 else kinds[:0]))
        return job

    def test_sync_has_the_same_bits(self):
        job = self.storm(SYNC, KILLS)
        self.same_bits(job, job.steps)

    def test_async_applies_each_once(self):
        job = self.storm("async", KILLS)
        self.assertIn(f"step={job.steps} ", job.log(job.chief))
        account(self, job.log(job.chief), job.steps, 2)
        self.weir("eval", self.graph, "--checkpoint", job.dir / job.folder)


class Cuts(Case):
    """Real connections that are cut while pushes are under way."""

    def test_each_push_counts_once(self):
        """By the messages that pass, not by time: all cuts come."""
        steps, chance = 50 * CUTS, random.Random(f"{SEED} cuts")
        job = Job(self, "c", "async", steps, beat=BEAT, gates=True,
                  more=AWAY)
        gate = job.gates["ps:0"]

        def strike():
            if chance.random() < 0.2 and gate.cut_bulk():
                job.count("cut bulk")
            elif gate.cut():
                job.count("cut")

        gate.every([chance.randint(20, 80) for _ in range(CUTS)], strike)
        job.start()
        job.finish()
        self.show(job, "cut", "cut bulk")
        self.applied(job, steps)
        acknowledged = sum(job.numbers(n, "acknowledged")
                           for n in ("worker:0", "worker:1"))
        applied = job.numbers("ps:0", "updates applied")
        print("applied", applied, "acknowledged", acknowledged)
        self.assertEqual(applied, steps)
        self.assertEqual(acknowledged, steps)
        again = [job.numbers(n, "sent again") for n in ("worker:0", "worker:1")]
        self.assertGreater(sum(again), 0)

    def cuts(self, mode):
        """Cuts of all kinds, in front of all that take connections."""
        chance = random.Random(f"{SEED} {mode}")
        job = Job(self, "n", mode, 100000000, servers=2, workers=2, beat=BEAT,
                  gates=True, more=AWAY)
        kinds = ["both ways", "one way up", "one way down", "flapping",
                 "half open"]
        plan = [(k, g) for k in kinds for g in sorted(job.gates)]
        chance.shuffle(plan)
        if SANITIZED:
            plan = [next(p for p in plan if p[0] == k) for k in kinds]
        job.start()
        for kind, who in plan:
            gate = job.gates[who]
            self.assertTrue(job.progress(), job.logs())
            if kind == "flapping":
                for _ in range(10):
                    job.count(kind) if gate.cut() else None
                    time.sleep(chance.random() * 0.1)
                continue
            if kind == "half open":
                job.count(kind) if gate.half() else None
            else:
                job.count(kind) if gate.pipes else None
                gate.silence(kind != "one way down", kind != "one way up")
            time.sleep(LOST_S * (0.3 + chance.random()))
            gate.heal()
        job.steps = job.stop() + 100  # to the end, where the account is whole
        job.start()
        job.finish()
        self.show(job, *kinds)
        return job

    def test_all_kinds_sync(self):
        job = self.cuts(SYNC)
        self.same_bits(job, job.steps)

    def test_all_kinds_async(self):
        """Ended by a signal, servers may have different parts of a run."""
        job = self.cuts("async")
        account(self, job.log(job.chief), job.steps, 2)


class Pauses(Case):
    """Processes that stand still beyond their lease, and then go on."""

    def test_each_role(self):
        job = Job(self, "p", SYNC, 300, servers=2, workers=3, beat=BEAT,
                  more=AWAY)
        job.start()
        for who, seconds in (("ps:0", LOST_S), ("ps:1", LOST_S),
                             ("worker:1", OUT_S), ("worker:0", LOST_S),
                             ("worker:2", LOST_S)):
            while True:  # the job may be over just then
                if job.over():
                    job.finish()
                    job.steps += 300
                    job.start()
                job.progress()
                if job.signal(who, signal.SIGSTOP):
                    break
            job.count(f"stop {who}")
            time.sleep(seconds)
            job.signal(who, signal.SIGCONT)
        job.finish()
        self.show(job, *(f"stop {n}" for n in ("ps:0", "ps:1", "worker:0",
                                               "worker:1", "worker:2")))
        self.same_bits(job, job.steps)

    def test_an_old_chief_is_fenced(self):
        """A chief stands still, another one takes the job; when the old one
        wakes it changes nothing more, and ends with a name."""
        job = Job(self, "f", SYNC, 100000000, chief=True, beat=BEAT,
                  gates=True, more=["--generations", self.dir / "generations"])
        job.folder = "old"
        job.start()
        job.progress(2)
        old = job.parts["chief:0"]
        old.send_signal(signal.SIGSTOP)
        time.sleep(LOST_S)
        kept = (job.dir / "old")
        before = sorted(p.name for p in kept.iterdir())
        job.folder, gate = "new", job.gates["chief:0"]
        host, at = job.real["chief:0"].split(":")
        job.real["chief:0"] = f"{host}:{int(at) + 100}"
        gate.to = (host, int(at) + 100)
        gate.cut()
        os.rename(job.dir / "chief0.log", job.dir / "old.log")
        job.begin("chief:0")
        job.progress(2)
        old.send_signal(signal.SIGCONT)
        self.assertEqual(old.wait(HANG), 138)
        text = (job.dir / "old.log").read_text()
        self.assertRegex(text, r"error\[W7(100|023)\]", text)
        job.progress(2)
        job.signal("chief:0", signal.SIGINT)
        self.assertEqual(job.parts["chief:0"].wait(HANG), 130, job.logs())
        for name, p in job.parts.items():
            if name != "chief:0":
                self.assertEqual(p.wait(HANG), 0, job.logs())
        after = sorted(p.name for p in kept.iterdir())
        self.assertEqual(before, after, "the old chief has written")
        self.same_bits(job, job.last_step())


class Disks(Case):
    def test_killed_while_it_saves(self):
        self.graph.write_text(GRAPH.replace("hidden: 2100", "hidden: 40000"))
        job = Job(self, "d", SYNC, 100000000, servers=2, beat=BEAT)
        folder = job.dir / "ckpt" / "generations"
        job.start()
        end = time.monotonic() + HANG
        for _ in range(max(3, KILLS // 3)):
            while True:
                self.assertLess(time.monotonic(), end, "it is never hit")
                self.assertFalse(job.over(), job.logs())
                hit = [p for p in folder.glob("server-*/*tmp*")]
                if hit:
                    who = f"ps:{int(hit[0].parent.name[-5:])}"
                    if job.kill(who):
                        job.count("killed while it saves")
                        break
            job.again()
        step = job.stop()
        self.show(job, "killed while it saves")
        self.same_bits(job, step)

    def limit(self, job, name, size):
        """No file of that process may grow beyond `size`: a disk that is full.
        """
        resource.prlimit(job.parts[name].pid, resource.RLIMIT_FSIZE,
                         (size, resource.RLIM_INFINITY))

    def go_on(self, job, full, more=()):
        """A job that has ended once goes on to step 300. The disk of `full` is
        so before the others are there, for without them there is no step. The
        chief, with `more`, is last where it can be."""
        job.start()
        job.finish()
        job.steps = 300
        job.begin_there(full)
        self.limit(job, full, 4096)
        job.start([n for n in job.names if n not in (full, job.chief)])
        if full != job.chief:
            job.more, own = [*job.more, *more], job.more
            job.begin(job.chief)
            job.more = own

    def test_full_for_a_while(self):
        """Generations are given up, the job goes on, the one before is kept."""
        job = Job(self, "d", SYNC, 100000000, servers=2, beat=BEAT)
        job.start()
        job.progress()
        self.limit(job, "ps:1", 4096)
        job.wait_log("ps:1", "is given up", 2)
        job.count("full server")
        job.kill("ps:0")  # all go back to the one before
        job.again()
        job.wait_log(job.chief, "the job goes on with step", 1)
        self.limit(job, "ps:1", resource.RLIM_INFINITY)
        step = job.stop()
        self.show(job, "full server", "kill ps")
        self.same_bits(job, step)

    def test_full_at_the_end(self):
        """The last generation is tried for a minute; here for a second."""
        job = Job(self, "d", "async", 100, beat=BEAT)
        self.go_on(job, "ps:0", ["--start-timeout",
                                 "1s" if not SANITIZED else "20s"])
        codes = job.codes()
        self.assertEqual(codes.pop(job.chief), 7, job.logs())
        self.assertEqual(set(codes.values()), {0}, job.logs())
        self.assertIn("error[W7102]", job.log(job.chief))
        self.weir("eval", self.graph, "--checkpoint", job.dir / "ckpt")
        job.start()  # with room: from the one before
        job.finish()
        self.assertIn("step=300 ", job.log(job.chief))

    def test_full_at_the_chief(self):
        """Its checkpoints fail: a warning; the last one: its error ends the job,
        with the generations as they are."""
        job = Job(self, "d", SYNC, 100, beat=BEAT,
                  more=["--generations", self.dir / "generations"])
        self.go_on(job, job.chief)
        codes = job.codes()
        self.assertEqual(codes.pop(job.chief), 7, job.logs())
        self.assertEqual(set(codes.values()), {0}, job.logs())
        self.assertIn("W6005", job.log(job.chief))
        job.start()  # with room
        job.finish()
        self.same_bits(job, 300)


def npy(kind, shape, data):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    head = head.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode() + data


class Ends(Case):
    """A job that cannot go on ends with a name; one that is over says so."""

    def test_a_chief_that_fails(self):
        """With an error of its own, a data set that is gone: the others are told,
        and the job goes on when the same commands come again."""
        data, label = self.dir / "x.npy", self.dir / "label.npy"
        whole = npy("<f4", (4, 2), bytes(32))
        data.write_bytes(whole)
        label.write_bytes(npy("<i4", (4,), bytes(16)))
        self.graph.write_text(
            GRAPH[:GRAPH.index("  test:\n")] +
            f"  test: {{source: npy, files: {{x: x.npy, label: label.npy}}, "
            "batch: 4, memory: 0, prefetch: 0}\n" +
            GRAPH[GRAPH.index("train:\n  minimize"):])
        job = Job(self, "e", SYNC, 100000000, beat=BEAT)
        job.start()
        job.progress()
        os.truncate(data, 20)
        codes = job.codes()
        self.assertNotIn(codes.pop(job.chief), (0, 138), job.logs())
        self.assertEqual(set(codes.values()), {138}, job.logs())
        error = re.search(r"error\[(W\d+)\]", job.log(job.chief)).group(1)
        for name in codes:
            self.assertRegex(job.log(name), rf"error\[W7101\]: .*{error}")
        data.write_bytes(whole)
        job.start()
        job.wait_log(job.chief, "the job goes on with step")
        job.progress()
        job.signal(job.chief, signal.SIGINT)
        self.assertEqual(job.codes()[job.chief], 130, job.logs())

    def test_nobody_is_there(self):
        for who, says in (("worker:1", "(chief|ps):0"), ("ps:0", "chief:0"),
                          ("worker:0", "ps:0")):
            job = Job(self, f"a{who[:2]}{who[-1]}", "async", 10, beat=BEAT,
                      more=["--start-timeout", "1s"])
            job.start([who])
            self.assertEqual(job.codes(), {who: 138}, job.logs())
            self.assertRegex(job.log(who), r"error\[W7(022|103)\]: .*" + says)

    def test_a_part_that_comes_after_the_end(self):
        job = Job(self, "l", SYNC, 40, beat=BEAT)
        job.start()
        job.finish()
        job.more = ["--start-timeout", "1s" if not SANITIZED else "20s"]
        for who in ("worker:1", "ps:0"):
            job.start([who])
            self.assertEqual(job.parts[who].wait(HANG), 0, job.logs())
            self.assertIn("the job has ended after step 40", job.log(who))

    def test_a_worker_of_another_job(self):
        job = Job(self, "h", "async", 100000000, workers=3, beat=BEAT)
        job.start(["ps:0", "worker:0", "worker:1"])
        job.progress()
        job.more = ["--start-timeout", "3s", "--seed", 99]
        job.start(["worker:2"])
        self.assertEqual(job.parts["worker:2"].wait(HANG), 138)
        self.assertRegex(job.log("worker:2"), r"error\[W7023\]: .*refused")
        job.signal(job.chief, signal.SIGINT)
        self.assertEqual(job.parts[job.chief].wait(HANG), 130, job.logs())

    def test_a_chief_that_stays_away(self):
        job = Job(self, "w", "async", 100000000, beat=BEAT)
        # Who has two seconds comes when those that it needs are there.
        job.begin_there(job.chief)
        job.more = ["--start-timeout", "2s"]
        job.begin_there("ps:0")
        job.begin("worker:1")
        job.progress()
        job.kill(job.chief)
        for who in ("ps:0", "worker:1"):
            self.assertEqual(job.parts[who].wait(HANG), 138, job.logs())
            self.assertRegex(job.log(who), r"error\[W7022\]: chief:0")
        job.more = []
        job.steps = 10 ** 8
        job.start()  # the same commands go on
        job.wait_log(job.chief, "the job goes on with step")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
