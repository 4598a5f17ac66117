#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of parameter servers whose processes are started by hand, from a cluster
file, TF_CONFIG and the variables of ps-lite; each is killed and started again.

  test_by_hand.py WEIR SOURCE_ROOT CASE...

No verdict depends on a time limit: a job that is over before all kills have
been made is run again with more steps.
"""
import json
import os
import re
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_between import (  # noqa: E402  (it reads the same arguments)
    ENV, HANG, SYNC, Case, addresses)

PLAIN = {k: v for k, v in ENV.items()
         if k not in ("TF_CONFIG", "PORT") and k[:5] != "DMLC_" and k[:3] != "PS_"}
PARTS = ("ps:0", "worker:0", "worker:1", "chief:0")


def of_file(case, name):
    """The words and variables that make a process |name|."""
    job, index = name.split(":")
    file = case.dir / "cluster.yaml"
    if not file.exists():
        at = [f"unix:{case.dir}/{i}" for i in range(4)]
        file.write_text(f"ps: {json.dumps(at[:1])}\nworker: "
                        f"{json.dumps(at[1:3])}\nchief: {json.dumps(at[3:])}\n")
    return ["--cluster", file, "--job", job, "--index", index], {}


def of_tf_config(case, name):
    job, index = name.split(":")
    if not hasattr(case, "at"):
        case.at = addresses(4)
    config = {"cluster": {"ps": case.at[:1], "worker": case.at[1:3],
                          "chief": case.at[3:]},
              "task": {"type": job, "index": int(index)}}
    return ["--cluster", "tf-config"], {"TF_CONFIG": json.dumps(config)}


def of_dmlc(case, name, servers=1, workers=2, **more):
    if not hasattr(case, "at"):
        case.at = addresses(1)
    role = {"ps": "server", "chief": "scheduler"}.get(name[:-2], name[:-2])
    host, port = case.at[0].split(":")
    return ["--cluster", "dmlc"], {
        "DMLC_ROLE": role, "DMLC_NUM_SERVER": str(servers),
        "DMLC_NUM_WORKER": str(workers), "DMLC_PS_ROOT_URI": host,
        "DMLC_PS_ROOT_PORT": port, **more}


class Job(Case):
    def part(self, form, folder, mode, steps, name, *more):
        words, env = form(self, name)
        self.running[name] = self.start(
            self.words(folder, *words, "--mode", mode, "--steps", steps,
                       *more), f"{folder}-{name}", {**PLAIN, **env})

    def begin(self, form, folder, mode, steps, *more):
        self.running = {}
        for name in PARTS:
            self.part(form, folder, mode, steps, name, *more)

    def finish(self, folder):
        for name, p in self.running.items():
            self.ends(p, name=f"{folder}-{name}")

    def chief_says(self, folder, what, times=1):
        """False: the job was over first."""
        chief = self.running["chief:0"]
        while True:
            over = chief.poll() is not None
            if len(re.findall(what, self.log(f"{folder}-chief:0"))) >= times:
                return True
            if over:
                self.assertEqual(chief.returncode, 0,
                                 self.log(f"{folder}-chief:0"))
                return False
            time.sleep(0.005)

    def kill(self, name):
        p = self.running[name]
        if p.poll() is None:
            p.send_signal(signal.SIGKILL)
        return p.wait(HANG) == -signal.SIGKILL


class Story(Job):
    """A worker, the ps, the chief: each killed once, and started again with its
    own command line."""

    def worker_1(self, folder):
        """Which process is worker:1: ranks of ps-lite come by the network."""
        for name in ("worker:0", "worker:1"):
            if "this process is worker:1" in self.log(f"{folder}-{name}"):
                return name
        return "worker:1"

    def story(self, form, folder, mode, steps):
        """False: the job was over before the last kill."""
        def again(name):
            self.part(form, folder, mode, steps, name)
        self.begin(form, folder, mode, steps)
        if not self.chief_says(folder, "worker:1 has joined") or \
                not self.chief_says(folder, "step="):
            return False
        worker = self.worker_1(folder)
        joined = len(re.findall("worker:1 has joined",
                                self.log(f"{folder}-chief:0")))
        if not self.kill(worker) or \
                not self.chief_says(folder, r"worker:1 is lost"):
            return False
        again(worker)
        if not self.chief_says(folder, "worker:1 has joined", joined + 1) or \
                not self.kill("ps:0") or \
                not self.chief_says(folder, r"ps:0 is lost"):
            return False
        again("ps:0")
        if not self.chief_says(folder, r"the job goes on with step \d+") or \
                not self.kill("chief:0") or \
                "event=account" in self.log(f"{folder}-chief:0"):
            return False  # the last: it died after it had ended the job
        again("chief:0")
        return True

    def crash(self, form, mode):
        for steps in (400, 1600, 6400, 25600, 102400):
            folder = f"c{steps}"
            if self.story(form, folder, mode, steps):
                break
            for name in self.running:
                self.kill(name)
        else:
            self.fail(f"over before three kills: {steps} steps")
        self.finish(folder)
        text = self.log(f"{folder}-chief:0")
        runs = steps * (2 if mode == SYNC else 1)
        self.assertRegex(text, f"event=account runs={runs} .*"
                         f'applied="ps:0 {runs}" .* partial=0 ')
        if mode == SYNC:
            self.same(self.one(steps, accumulate=2), folder)
        else:
            self.weir("eval", self.graph, "--checkpoint", folder)


class Crash(Story):
    def test_file_async(self):
        self.crash(of_file, "async")

    def test_tf_config_sync(self):
        self.crash(of_tf_config, SYNC)

    def test_dmlc_sync(self):
        self.crash(of_dmlc, SYNC)


class CrashMore(Story):
    """The other modes of each."""

    def test_file_sync(self):
        self.crash(of_file, SYNC)

    def test_tf_config_async(self):
        self.crash(of_tf_config, "async")

    def test_dmlc_async(self):
        self.crash(of_dmlc, "async")


class Late(Job):
    """Workers that no cluster file has."""

    def join(self, folder, steps):
        """Two of three that may come; false: the job was over first."""
        self.begin(of_file, folder, SYNC, steps, "--max-workers", 5)
        self.chief_says(folder, "step=")
        for i in (2, 4):
            words = ["--cluster", self.dir / "cluster.yaml", "--job", "worker",
                     "--index", i]
            self.part(lambda c, n: (words, {}), folder, SYNC, steps,
                      f"worker:{i}", "--max-workers", 5)
        return all(self.chief_says(folder, f"worker:{i} has joined")
                   for i in (2, 4))

    def test_they_join_and_the_bits_stay(self):
        for steps in (400, 1600, 6400, 25600, 102400):
            folder = f"l{steps}"
            if self.join(folder, steps):
                break
            for name in self.running:
                self.kill(name)
        else:
            self.fail(f"over before two have joined: {steps} steps")
        self.finish(folder)
        self.same(self.one(steps, accumulate=2), folder)
        self.assertRegex(self.log(f"{folder}-chief:0"),
                         f"event=account runs={2 * steps} .*"
                         f'applied="ps:0 {2 * steps}" .* partial=0 ')

    def test_a_sparse_cluster(self):
        """Each process knows itself, a worker all ps too: Kubeflow's dynamic
        workers. A third one comes late or never."""
        def of_sparse(case, name, *, most=3):
            at = {n: f"unix:{case.dir}/j-{n.replace(':', '-')}.s:1"
                  for n in ("ps:0", "ps:1", "worker:0", "worker:1", "worker:2")}
            job, index = name.split(":")
            own = {"ps": [at[name]]} if job == "ps" else {
                "ps": [at["ps:0"], at["ps:1"]], "worker": {index: at[name]}}
            config = {"sparseCluster": own,
                      "task": {"type": job, "index": int(index)}}
            words = ["--cluster", "tf-config", "--max-workers", most]
            return words + (["--servers", 2] if job == "ps" else []), {
                "TF_CONFIG": json.dumps(config)}
        self.running = {}
        for name in ("worker:1", "ps:1", "ps:0", "worker:0"):
            self.part(of_sparse, "s", SYNC, 100000000, name)
        # One that is not let in before the end would wait for a chief.
        chief = self.running.pop("worker:0")
        for what in ("worker:1 has joined", " step="):
            self.waits(chief, what, "s-worker:0")
        chief.send_signal(signal.SIGINT)
        self.ends(chief, 130, "s-worker:0")
        self.finish("s")
        step = self.newest("s")["manifest"]["step"]
        self.same(self.one(step, accumulate=2), "s")
        words, env = of_sparse(self, "worker:1", most=1)
        for more, says in ((["--max-workers", 1], "no task worker:1"),
                           ([], "does not say how many workers may come")):
            words = self.words("s", "--cluster", "tf-config", "--mode", SYNC,
                               *more)
            p = self.start(words, "bad", {**PLAIN, **env})
            self.ends(p, 2, "bad")
            self.assertIn(says, self.log("bad"))

    def test_bounds(self):
        words, _ = of_file(self, "worker:2")
        words = self.words("b", *words, "--mode", "async")[1:]
        p = self.weir(*words, code=2)
        self.assertIn("no task worker:2", p.stderr)
        self.assertIn("--max-workers N, for all processes", p.stderr)
        p = self.weir(*words, "--max-workers", 2, code=2)
        self.assertIn("no task worker:2", p.stderr)
        p = self.weir(*words, "--max-workers", 1, code=2)
        self.assertIn("at most 1 workers are allowed, and the cluster has 2",
                      p.stderr)
        p = self.weir("train", self.graph, "--local", "ps=1,worker=1", "--mode",
                      "async", "--max-workers", 4, code=2)
        self.assertIn("--max-workers has no effect with --local", p.stderr)
        p = self.weir("train", self.graph, "--max-workers", 4, code=2)
        self.assertIn("--max-workers is for replicas between graphs", p.stderr)


class Dmlc(Job):
    def refused(self, says, *words, **env):
        p = self.weir_with(env, *(words or self.words("d", "--cluster", "dmlc",
                                                      "--mode", "async")[1:]))
        self.assertIn("error[W7082]", p.stderr)
        self.assertIn(says, p.stderr)

    def weir_with(self, env, *words, code=2):
        own = ENV.copy()
        try:
            ENV.clear()
            ENV.update({**PLAIN, **env})
            return self.weir(*words, code=code)
        finally:
            ENV.clear()
            ENV.update(own)

    def test_a_job(self):
        """Two servers, three workers: the bits of one process."""
        self.running = {}
        for name in ("worker:0", "ps:0", "worker:1", "chief:0", "worker:2",
                     "ps:1"):
            self.part(lambda c, n: of_dmlc(c, n, 2, 3), "d", SYNC, 60, name)
        self.finish("d")
        self.same(self.one(60, accumulate=2), "d")
        log = self.log("d-chief:0")
        self.assertIn("all processes of the job have registered", log)
        self.assertIn('applied="ps:0 120 ps:1 120"', log)
        ranks = sorted(re.findall(r"this process is (\w+:\d)", "".join(
            self.log(f"d-{n}") for n in self.running)))
        self.assertEqual(ranks, ["ps:0", "ps:1", "worker:0", "worker:1",
                                 "worker:2"])

    def test_variables(self):
        env = of_dmlc(self, "worker:0")[1]
        for name, value, says in (
                ("DMLC_ROLE", "boss", "DMLC_ROLE=boss"),
                ("DMLC_ROLE", "", "has no DMLC_ROLE"),
                ("DMLC_PS_ROOT_PORT", "99999", "DMLC_PS_ROOT_PORT=99999"),
                ("DMLC_NUM_SERVER", "0", "DMLC_NUM_SERVER=0"),
                ("DMLC_NUM_WORKER", "many", "DMLC_NUM_WORKER=many"),
                ("DMLC_INTERFACE", "no-such0", "no such interface"),
                ("DMLC_PS_VAN_TYPE", "ibverbs", "DMLC_PS_VAN_TYPE=ibverbs")):
            self.refused(says, **{**env, name: value})
        self.refused("for `weir train`", "run", self.graph, "--cluster", "dmlc",
                     **env)
        self.refused("replicas between graphs", "train", self.graph,
                     "--cluster", "dmlc", **env)
        p = self.weir_with({**env, "DMLC_NUM_WORKERS": "3"},
                           *self.words("d", "--cluster", "dmlc",
                                       "--print-config")[1:], code=0)
        self.assertIn("warning: --cluster dmlc: DMLC_NUM_WORKERS is not read",
                      p.stderr)
        self.assertRegex(p.stdout, r"cluster: \"?ps=1,worker=2")
        p = self.weir_with(env, *self.words("d", "--cluster", "dmlc", "--job",
                                            "ps")[1:])
        self.assertIn("--job has no effect with --cluster dmlc", p.stderr)

    def test_auto(self):
        words = self.words("d", "--cluster", "auto", "--print-config")[1:]
        dmlc, tf = of_dmlc(self, "worker:0")[1], \
            {"TF_CONFIG": json.dumps({"cluster": {"ps": ["a:1"],
                                                  "worker": ["b:1"]}})}
        for env, says, cluster in (
                (dmlc, "dmlc, for the environment has DMLC_*", "ps=1,worker=2"),
                (tf, "tf-config, for the environment has TF_CONFIG",
                 "ps=1,worker=1"),
                ({}, "this machine", "auto")):
            p = self.weir_with(env, *words, code=0)
            self.assertIn(f"--cluster auto: {says}", p.stderr)
            self.assertRegex(p.stdout, f"cluster: \"?{cluster}")
        p = self.weir_with({**dmlc, **tf}, *words)
        self.assertIn("has TF_CONFIG, and DMLC_* of ps-lite as well", p.stderr)

    def test_who_is_missing(self):
        """A process says for whom it waits, and is ended by a signal."""
        self.running = {}
        self.part(of_dmlc, "w", "async", 100, "worker:0")
        worker = self.running["worker:0"]
        self.waits(worker, "waits for the scheduler at 127", "w-worker:0")
        self.part(of_dmlc, "w", "async", 100, "chief:0")
        self.waits(self.running["chief:0"],
                   r"0 of 1 servers and \d of 2 workers are there", "w-chief:0")
        self.waits(worker, "waits for a rank: 0 of 1 servers and 1 of 2 workers",
                   "w-worker:0")
        worker.send_signal(signal.SIGTERM)
        self.ends(worker, 143, "w-worker:0")

    def test_too_many(self):
        """A second scheduler, a second server, other counts: exit code 2."""
        self.running = {}
        beat = ("--heartbeat", "100ms")
        self.part(of_dmlc, "m", "async", 100, "chief:0", *beat)
        first = self.running["chief:0"]
        self.part(of_dmlc, "m", "async", 100, "ps:0", *beat)
        self.waits(first, "server 0 has registered", "m-chief:0")
        self.part(of_dmlc, "m", "async", 100, "ps:1", *beat)
        self.ends(self.running["ps:1"], 2, "m-ps:1")
        self.assertRegex(self.log("m-ps:1"), r"error\[W7083\]: the job has 1 "
                                             "server, and all of them are there")
        self.part(lambda c, n: of_dmlc(c, n, workers=3), "m", "async", 100,
                  "worker:0", *beat)
        self.ends(self.running["worker:0"], 2, "m-worker:0")
        self.assertRegex(
            self.log("m-worker:0"), r"error\[W7082\]: a worker of a job of 1 "
            "servers and 3 workers; the scheduler's has 1 and 2")
        words, env = of_dmlc(self, "chief:0")
        p = self.weir_with(env, *self.words("n", *words, "--mode", "async")[1:])
        self.assertIn("error[W7002]", p.stderr)
        self.assertIsNone(first.poll())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
