# SPDX-License-Identifier: Apache-2.0
"""A job between graphs whose parts a test starts, stops, kills, and starts again
with their own command lines; gates (gate.py) stand before servers and chief.

  job = Job(case, "name", "async", steps=100, servers=1, workers=2)
  job.start()            all parts
  job.kill("ps:0")       SIGKILL; True if it ran
  job.again()            starts those that were killed, as a script would
  job.finish()           waits until all have ended with 0, starting again
  job.stop()             ends a job without an end by a signal; its last step
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gate import Gate, own_host  # noqa: E402

HANG = int(os.environ.get("CLI_HANG", "300"))  # seconds: ends what would hang


def account(case, log, runs, servers):
    """All were acknowledged, and each server has applied as many. After
    kills some may be in parts: of a worker that died between two servers.
    """
    said = re.findall(r"event=account runs=(\d+) .*applied=\"([^\"]*)\" .*"
                      r"partial=(\d+) ", log)
    case.assertTrue(said, log)
    case.assertEqual(int(said[-1][0]), runs, said)
    applied = re.findall(r"ps:\d+ (\d+)", said[-1][1])
    case.assertEqual(len(applied), servers, said)
    for n in applied:
        case.assertLessEqual(int(n), runs, said)
        case.assertGreaterEqual(int(n) + int(said[-1][2]), runs, said)
    if servers == 1:
        case.assertEqual(said[-1][2], "0", said)


class Job:
    def __init__(self, case, name, mode, steps, servers=1, workers=2,
                 chief=False, beat="200ms", gates=False, more=()):
        self.case, self.name, self.mode = case, name, mode
        self.dir, self.steps, self.beat = case.dir / name, steps, beat
        self.dir.mkdir()
        self.more = list(more)
        self.names = [f"ps:{i}" for i in range(servers)]
        self.names += [f"worker:{i}" for i in range(workers)]
        self.names += ["chief:0"] if chief else []
        self.chief = "chief:0" if chief else "worker:0"
        self.real, self.gates = {}, {}
        for i, name in enumerate(self.names):
            self.real[name] = f"{own_host()}:{20000 + i}"
        if gates:
            for name in self.names:
                if name.startswith("ps") or name == self.chief:
                    host, at = self.real[name].split(":")
                    self.gates[name] = Gate((host, int(at)))
                    case.addCleanup(self.gates[name].close)
        self.parts, self.counts, self.dead = {}, {}, set()
        self.folder = "ckpt"

    def cluster(self, name):
        """The cluster file of one part: its own address, the others' gates."""
        jobs = {}
        for n in self.names:
            at = self.real[n]
            if n != name and n in self.gates:
                at = self.gates[n].address
            jobs.setdefault(n.split(":")[0], []).append(at)
        path = self.dir / f"{name.replace(':', '')}.yaml"
        path.write_text("".join(f"{j}: {json.dumps(a)}\n"
                                for j, a in jobs.items()))
        return path

    def words(self, name):
        job, index = name.split(":")
        return [str(w) for w in self.case.words(
            self.dir / self.folder, "--cluster", self.cluster(name), "--job",
            job, "--index", index, "--mode", self.mode, "--steps", self.steps,
            "--heartbeat", self.beat, *self.more)]

    def begin(self, name):
        with open(self.dir / f"{name.replace(':', '')}.log", "ab") as log:
            p = subprocess.Popen(self.words(name), cwd=self.case.dir,
                                 env=self.case.ENV, stdout=log, stderr=log)
        self.case.addCleanup(p.wait)
        self.case.addCleanup(p.kill)
        self.parts[name] = p
        self.dead.discard(name)

    def start(self, only=None):
        for name in only or self.names:
            self.begin(name)

    def log(self, name):
        path = self.dir / f"{name.replace(':', '')}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def logs(self):
        return "\n".join(f"---- {n}\n{self.log(n)[-3000:]}" for n in self.names)

    def runs(self, name):
        return self.parts[name].poll() is None

    def over(self):
        """The chief has ended by itself."""
        return self.chief not in self.dead and not self.runs(self.chief)

    def signal(self, name, number):
        if not self.runs(name):
            return False
        self.parts[name].send_signal(number)
        return True

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def kill(self, name):
        if name in self.dead or not self.signal(name, signal.SIGKILL):
            return False
        self.parts[name].wait()
        self.dead.add(name)
        self.count("kill " + ("chief" if name == self.chief
                              else name.split(":")[0]))
        return True

    def again(self):
        for name in sorted(self.dead):
            self.begin(name)

    def wait_log(self, name, what, times=1):
        """Until the log of `name` has `what` so often, or the chief has ended.
        """
        end = time.monotonic() + HANG
        while len(re.findall(what, self.log(name))) < times:
            if self.over() or time.monotonic() > end:
                break
            time.sleep(0.01)
        found = len(re.findall(what, self.log(name))) >= times
        self.case.assertTrue(found or self.over(),
                             f"{what} is not in the log:\n{self.logs()}")
        return found

    def generations(self):
        return len(re.findall(r"generation \d+ is complete", self.log("ps:0")))

    def progress(self, more=1):
        """Until there are so many more generations, or the chief has ended."""
        want = self.generations() + more
        end = time.monotonic() + HANG
        while self.generations() < want and not self.over():
            self.case.assertLess(time.monotonic(), end,
                                 f"no generation:\n{self.logs()}")
            time.sleep(0.01)
        return not self.over()

    def codes(self):
        end = time.monotonic() + HANG
        codes = {}
        for name, p in self.parts.items():
            try:
                codes[name] = p.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.case.fail(f"{name} does not end\n{self.logs()}")
        return codes

    def finish(self):
        """Who is dead when the job is over, or by now, is not needed any more.
        """
        while not self.over():
            self.again()
            time.sleep(0.05)
        self.parts = {n: p for n, p in self.parts.items()
                      if n not in self.dead}
        self.dead = set()
        for name, code in self.codes().items():
            self.case.assertEqual(code, 0, f"{name}\n{self.logs()}")

    def stop(self):
        """Waits for progress, which needs all parts, interrupts the chief, and
        returns the last step."""
        self.again()
        self.case.assertTrue(self.progress(), self.logs())
        self.signal(self.chief, signal.SIGINT)
        codes = self.codes()
        self.case.assertEqual(codes.pop(self.chief), 130, self.logs())
        self.case.assertEqual(set(codes.values()), {0}, self.logs())
        return self.last_step()

    def last_step(self):
        return int(re.findall(r"step=(\d+)", self.log(self.chief))[-1])

    def begin_there(self, name):
        """Starts a part and waits until others can find it."""
        says = "the chief is there" if name == self.chief else "listening at"
        before = self.log(name).count(says)
        self.begin(name)
        end = time.monotonic() + HANG
        while self.log(name).count(says) == before:
            self.case.assertTrue(self.runs(name), self.logs())
            self.case.assertLess(time.monotonic(), end, self.logs())
            time.sleep(0.01)

    def numbers(self, name, what):
        """The number before `what` in the last line of a part that has it."""
        found = re.findall(r"(\d+) " + what, self.log(name))
        self.case.assertTrue(found, f"{name}: no '{what}'\n{self.log(name)}")
        return int(found[-1])
