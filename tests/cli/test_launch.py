#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How tasks are started by what people run: TF_CONFIG, ssh, systemd.

  test_launch.py WEIR SOURCE_ROOT [CASE...]

No verdict depends on a time limit: those here end a test that hangs.
"""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ENV = {k: v for k, v in os.environ.items()
       if not k.startswith("WEIR_") and k != "TF_CONFIG"}
CONTRIB = ROOT / "contrib"
HANG = 300


def addresses(count):
    """Some that nobody else has: of all of 127.0.0.0/8."""
    host = ".".join(str(random.randint(1, 254)) for _ in range(3))
    return [f"127.{host}:{20000 + i}" for i in range(count)]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-launch-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def run_(self, *args, code=0, **env):
        p = subprocess.run([str(a) for a in args], cwd=self.path, timeout=HANG,
                           env={**ENV, **env}, capture_output=True, text=True)
        self.assertEqual(p.returncode, code, f"{args}: {p.stdout}{p.stderr}")
        return p

    def start(self, *args, **env):
        p = subprocess.Popen([WEIR, *map(str, args)], cwd=self.path, text=True,
                             env={**ENV, **env}, stderr=subprocess.PIPE)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p


class TfConfig(Case):
    def config(self, role=None, index=0, **cluster):
        it = {"cluster": cluster or {"chief": ["a:1"], "ps": ["b:1"],
                                     "worker": ["c:1", "d:1"]}}
        if role:
            it["task"] = {"type": role, "index": index}
        return json.dumps(it)

    def weir(self, config, *args, code=0, **env):
        if config is not None:
            env["TF_CONFIG"] = config
        return self.run_(WEIR, *args, "--cluster", "tf-config", code=code, **env)

    def is_task(self, out):
        """cluster, job and index of --print-config."""
        found = dict(re.findall(r"^(\w+): (\S*)  #", out, re.M))
        return found["cluster"], found["job"], found["index"]

    def test_roles(self):
        tasks, run = "ps=1,worker=2", ("run", "g.weir.yaml", "--print-config")
        for args, config, want in (
                (("task",), self.config("worker", 1), (tasks, "worker", "1")),
                (("task",), self.config("ps"), (tasks, "ps", "0")),
                (("task", "--job", "ps"), self.config(), (tasks, "ps", "0")),
                (("task", "--job", "ps"), self.config("chief"),
                 (tasks, "ps", "0")),
                (run[:2], self.config("chief"), (tasks, "", "0")),
                (run[:2], self.config(), (tasks, "", "0")),
                (run[:2], self.config("worker", worker=["a:1"]),
                 ("worker=1", "worker", "0"))):
            p = self.weir(config, *args, "--print-config")
            self.assertEqual(self.is_task(p.stdout), want, (args, config))
        # Without the word, nothing is read.
        self.run_(WEIR, "task", "--job", "ps", "--cluster", tasks,
                  "--print-config", TF_CONFIG="{")

    def test_refusals(self):
        train = ("train", ROOT / "graphs/mlp_train.weir.yaml")
        for args, config, says, hint in (
                (("task",), None, "the environment has no TF_CONFIG", ""),
                (("task",), self.config(), "does not say which task", "--job"),
                (("task",), self.config("chief"), "a chief drives",
                 "weir train GRAPH --cluster tf-config"),
                (("task",), self.config("evaluator"), "takes no part",
                 "weir eval GRAPH"),
                (("eval", train[1]), self.config("evaluator"), "takes no part",
                 "weir train GRAPH --cluster tf-config"),
                (train, self.config("worker", 0), "the chief drives",
                 "weir task --cluster tf-config"),
                (train, self.config("ps"), "the chief drives", "weir task"),
                (train, self.config("worker", 1, worker=["a:1", "b:1"]),
                 "worker:0 drives, for there is no chief", "weir task"),
                (("task",), self.config("worker", 2), "this process is worker 2",
                 "TF_CONFIG:1:"),
                (("task",), self.config("boss"), '"boss" is no role',
                 "TF_CONFIG:1:"),
                (("task",), self.config("worker", worker=["a:1", "a:1"]),
                 "two processes are at a:1", "TF_CONFIG:1:"),
                (("task",), "{", "is no JSON", "")):
            p = self.weir(config, *args, code=2)
            self.assertIn("error[W7081]", p.stderr)
            self.assertIn(says, p.stderr)
            self.assertIn(hint, p.stderr)

    def drive(self, at, role, **cluster):
        """Starts the ps and the workers but the driver's; runs over them."""
        for job, all_of in cluster.items():
            for i in range(len(all_of)):
                if job == "chief" or (job, i) == (role, 0):
                    continue
                p = self.start("task", "--cluster", "tf-config", "--threads", 1,
                               TF_CONFIG=self.config(job, i, **cluster))
                self.assertIn(f"listening at {all_of[i]}", p.stderr.readline())
        args = ("run", ROOT / "graphs/tiny_matmul.weir.yaml", "-q", "-i",
                "b=f32:2x2=0,1,1,0")
        config = self.config(role, 0, **cluster)
        self.assertEqual(self.weir(config, *args, "--placer", "round_robin")
                         .stdout, self.run_(WEIR, *args).stdout)
        if role == "chief":
            out = self.weir(config, "cluster", "stop").stdout
            self.assertEqual(out.count("  ended\n"), 2)

    def test_a_chief_drives(self):
        at = addresses(3)
        self.drive(at, "chief", chief=at[:1], ps=at[1:2], worker=at[2:])

    def test_a_worker_drives_and_is_a_task(self):
        at = addresses(2)
        self.drive(at, "worker", worker=at)


class Ssh(Case):
    def setUp(self):
        super().setUp()
        self.file = self.path / "c.yaml"
        (self.path / "home").mkdir()
        ssh = self.path / "fake-ssh"
        ssh.write_text('#!/bin/sh\n[ "$1" = -q ] && shift\n'
                       f'echo "$1" >>{self.path}/hosts\n'
                       f'cd {self.path}/home && exec sh -c "$2"\n')
        ssh.chmod(0o755)
        self.env = {"TASKS_SSH": f"{ssh} -q", "TASKS_BIN": WEIR,
                    "TASKS_DIR": "a folder's"}

    def ssh(self, *args, code=0):
        return self.run_("sh", CONTRIB / "ssh/weir-ssh", *args, code=code,
                         **self.env)

    def test_tasks_start_and_end(self):
        ps, worker, other = addresses(3)
        self.file.write_text(f'# all of them\nps: ["{ps}"]   # one\n\n'
                             f"worker: ['{worker}', {other}]\ninsecure: false\n")
        self.addCleanup(subprocess.run, [WEIR, "cluster", "stop", "--force",
                                         "--cluster", self.file], env=ENV,
                        capture_output=True, timeout=HANG)
        out = self.ssh("start", self.file, "--threads", "1").stdout
        host = ps.split(":")[0]
        self.assertEqual(out.split("\n")[:3], [
            f"ps:0 on {host}", f"worker:0 on {host}", f"worker:1 on {host}"])
        self.assertEqual((self.path / "hosts").read_text().split(), [host] * 3)
        log = self.path / "home/a folder's/worker-1.log"
        while not log.exists() or "listening" not in log.read_text():
            time.sleep(0.02)
        while subprocess.run([WEIR, "cluster", "show", "--cluster", self.file],
                             env=ENV, capture_output=True).returncode != 0:
            time.sleep(0.02)
        self.assertEqual(self.ssh("stop", self.file).stdout.count("  ended\n"),
                         3)

    def test_files_that_it_does_not_read(self):
        for text, says in (("ps:\n  - a:1\n", "line 1: not of the form"),
                           ("ps: [a]\n", 'line 1: "a" is no HOST:PORT'),
                           ("ps: ['a;b:1']\n", '"a;b:1" is no HOST:PORT'),
                           ("ps: [unix:/x]\n", "is no HOST:PORT"),
                           ("insecure: true\n", "there is no task")):
            self.file.write_text(text)
            p = self.ssh("start", self.file, code=1)
            self.assertIn(says, p.stderr)
        self.assertFalse((self.path / "hosts").exists())
        self.assertIn("unknown action", self.ssh("go", self.file, code=2).stderr)
        self.assertIn("cannot be read", self.ssh("start", "no", code=2).stderr)

    @unittest.skipUnless(shutil.which("shellcheck"), "no shellcheck")
    def test_shellcheck(self):
        self.run_("shellcheck", CONTRIB / "ssh/weir-ssh")


class Systemd(Case):
    UNIT = CONTRIB / "systemd/weir-task@.service"

    def test_the_command(self):
        """The line of the unit, as systemd hands it to a shell."""
        line = re.search(r"^ExecStart=/bin/sh -c '(.*)' weir-task %i$",
                         self.UNIT.read_text(), re.M).group(1)
        line = line.replace("%%", "%").replace("$$", "$")
        line = line.replace("/usr/bin/weir", WEIR) + " --print-config"
        env = dict(x.split("=", 1) for x in
                   (CONTRIB / "systemd/weir-task.env").read_text().splitlines()
                   if x and x[0] != "#")
        out = self.run_("/bin/sh", "-c", line, "weir-task", "my_job-12",
                        **env).stdout
        for word in ("job: my_job ", "index: 12 ", "threads: 8 ",
                     "cluster: /etc/weir/cluster.yaml "):
            self.assertIn(word, out)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_systemd_analyze(self):
        text = self.UNIT.read_text().replace("/usr/bin/weir", WEIR)
        (self.path / "weir-task@.service").write_text(text)
        p = self.run_("systemd-analyze", "verify",
                      self.path / "weir-task@worker-0.service")
        self.assertEqual(p.stderr, "")


if __name__ == "__main__":
    unittest.main(argv=["test_launch", *sys.argv[3:]], verbosity=1)
