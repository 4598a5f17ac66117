#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs over the processes of a cluster: the bits of one process, and a name
for each failure.

  test_cluster.py WEIR SOURCE_ROOT [CASE...] [all] [long]

`all`: every graph of graphs/, by two of five placers; `long`: by all of them,
and 300 steps of training.
No verdict depends on a time limit: those here end a test that hangs.
"""
import contextlib
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import sizes

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
WORDS = sys.argv[3:]
ALL, LONG = "all" in WORDS, "long" in WORDS
SANITIZED = "CLI_SANITIZED" in os.environ
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
LOCAL = "ps=2,worker=2"
PLACERS = "search", "round_robin", "random:1", "random:2", "random:3"
BRIEF = [("round_robin", p) for p in PLACERS if p != "round_robin"]
SOME = ("tiny_matmul", "mlp", "recurrent", "mlp_mesh")
SLOW = """weir: 1
inputs: {n: "i64[] = 2000000000"}
nodes:
  slow:
    while: {carry: {i: n}, cond: "greater(i, 0)", next: {i: "sub(i, 1)"}}
outputs: [slow]
"""
HANG = 300  # seconds: an end for what would hang


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-cluster-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def weir(self, *args, code=0, **more):
        p = subprocess.run([WEIR, *map(str, args)], cwd=ROOT, timeout=HANG,
                           env={**ENV, "TMPDIR": str(self.path)},
                           capture_output=True, text=True, **more)
        if code is not None:
            self.assertEqual(p.returncode, code, f"{args}: {p.stderr}")
        return p

    def start(self, *args, **more):
        """A process that runs on; ended with the test."""
        p = subprocess.Popen([WEIR, *map(str, args)], cwd=ROOT,
                             env={**ENV, "TMPDIR": str(self.path)}, text=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             **more)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def task(self, job, index, spec, address="127.0.0.1:0"):
        """A task that serves; its process and its address."""
        p = self.start("task", "--job", job, "--index", index, "--cluster",
                       spec, "--listen", address, "--threads", 1,
                       "--heartbeat", "200ms")
        line = p.stderr.readline()
        m = re.search(r"listening at (\S+)", line)
        self.assertTrue(m, line)
        return p, m.group(1)

    def cluster(self, spec):
        """All tasks of "ps=1,worker=2", and a file of their addresses."""
        tasks, text = {}, ""
        for job, count in (part.split("=") for part in spec.split(",")):
            addresses = []
            for i in range(int(count)):
                tasks[f"{job}:{i}"], at = self.task(job, i, spec)
                addresses.append(at)
            text += f"{job}: {json.dumps(addresses)}\n"
        file = self.path / "cluster.yaml"
        file.write_text(text)
        return tasks, file

    def until_begun(self, p):
        """Reads what `p` says until its session, or its run, has begun."""
        line = ""
        while "begun" not in line:
            line = p.stderr.readline()
            self.assertTrue(line, "the process has ended")

    def graph(self, text):
        path = self.path / "g.weir.yaml"
        path.write_text(text)
        return path

    def feeds_of(self, graph):
        """Random values for every input without a default; the outputs."""
        feeds = [*sizes.SMALLER.get(graph.name, ())]
        while True:
            p = self.weir("run", graph, "--json", "-q", *feeds, code=None)
            m = re.search(r"W4012\]: (\w+):", p.stderr)
            if p.returncode != 5 or not m:
                self.assertEqual(p.returncode, 0, p.stderr)
                return feeds, p.stdout
            feeds += ["-i", f"{m.group(1)}=random:seed=3"]

    def nothing_left(self, text):
        """No process has |text| in its command line, no folder is left."""
        for p in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = p.read_bytes().decode(errors="replace")
            except OSError:
                continue
            self.assertNotIn(text, line)
        self.assertEqual([f for f in os.listdir(self.path)
                          if f.startswith("weir-")], [])


def travelled(log):
    """Values that a run's log counts: to the driver, from it, and from task to
    task, each process counting those that came to it."""
    fetched = re.search(r"; (\d+) values?, [^;]* came from tasks$", log, re.M)
    counts = re.findall(r"^\[\w+:\d+\] the session is over: (\d+) values?, .* "
                        r"came from the driver, (\d+) values?, ", log, re.M)
    assert fetched and len(counts) == 4, log
    return (int(fetched.group(1)), sum(int(a) for a, _ in counts),
            sum(int(b) for _, b in counts))


class Graphs(Case):
    def check(self, path, placer):
        """A run has the bits of one process; its values cross processes, and
        between tasks as many as its plan says, which are returned."""
        feeds, alone = self.feeds_of(path)
        saved = self.path / "plan.json"
        p = self.weir("run", path, "--json", *feeds, "--local", LOCAL,
                      "--task-threads", 1, "--placer", placer, "--save-plan",
                      saved)
        self.assertEqual(p.stdout, alone)
        fetched, from_driver, between = travelled(p.stderr)
        self.assertGreaterEqual(fetched, len(json.loads(alone))) # and variables
        self.assertGreater(fetched + from_driver + between, 0)
        edges = json.loads(saved.read_text())["edges"]
        # A collective over tasks is sends to its first rank and back, besides.
        self.assertGreaterEqual(between, len(edges), p.stderr)
        if not re.search("^mesh:", path.read_text(), re.M):
            self.assertEqual(between, len(edges), p.stderr)
        return between

    def test_bits_of_one_process(self):
        crossed = {}
        for i, path in enumerate(sizes.graphs(ROOT)):
            if not ALL and path.name.split(".")[0] not in SOME:
                continue
            for placer in PLACERS if LONG else BRIEF[i % len(BRIEF)]:
                with self.subTest(graph=path.name, placer=placer):
                    n = self.check(path, placer)
                    if placer != "search":
                        crossed.setdefault(path.name, []).append(n)
        # Between tasks, too, by one placer at least.
        self.assertEqual([g for g, n in crossed.items() if not any(n)], [])

    def test_files_of_outputs(self):
        graph = ROOT / "graphs/tiny_matmul.weir.yaml"
        one, many = self.path / "one.npy", self.path / "many.npy"
        self.weir("run", graph, "-o", f"c=@{one}")
        p = self.weir("run", graph, "-o", f"c=@{many}", "--local", LOCAL)
        self.assertEqual(one.read_bytes(), many.read_bytes())
        self.assertIn("[worker:1] ", p.stderr)
        self.nothing_left(str(self.path))

    def test_output_that_cannot_be_written(self):
        line = ('exec "$0" run graphs/tiny_matmul.weir.yaml --local worker=2 '
                '-q --json ')
        for output, code in (("> /dev/full", 6), (">&-", 6)):
            p = subprocess.run(["sh", "-c", line + output, WEIR], cwd=ROOT,
                               env={**ENV, "TMPDIR": str(self.path)},
                               timeout=HANG, capture_output=True, text=True)
            self.assertEqual(p.returncode, code, p.stderr)
            self.assertEqual(p.stderr.count("W5009"), 1, p.stderr)
            self.nothing_left(str(self.path))

    def test_graph_from_standard_input(self):
        text = (ROOT / "graphs/tiny_matmul.weir.yaml").read_text()
        p = self.weir("run", "-", "--json", "-q", "--local", "worker=2",
                      "--placer", "round_robin", input=text)
        self.assertIn('"c"', p.stdout)

    def test_values_set_by_path_travel(self):
        args = ["run", "graphs/tiny_matmul.weir.yaml", "--json", "-q", "--set",
                "nodes.c=add(a, b)"]
        alone = self.weir(*args).stdout
        there = self.weir(*args, "--local", "worker=2", "--placer",
                          "round_robin").stdout
        self.assertEqual(alone, there)
        self.assertNotEqual(alone, self.weir(*args[:4]).stdout)

    def test_bench(self):
        p = self.weir("bench", "graphs/mlp.weir.yaml", "--local", LOCAL,
                      "--runs", 5, "--placer", "round_robin", "--threads", 1,
                      "--json")
        self.assertEqual(json.loads(p.stdout)["runs"], 5)


class Train(Case):
    GRAPH = "graphs/lenet_train.weir.yaml"
    STEPS = 300 if LONG else 4

    def train(self, to, *more, steps=None):
        return self.weir("train", self.GRAPH, "--checkpoint", self.path / to,
                         "--steps", steps or self.STEPS, *more)

    def same(self, a, b):
        self.weir("checkpoint", "diff", self.path / a, self.path / b)

    def test_weights_of_one_process(self):
        self.train("one")
        self.train("many", "--local", "ps=1,worker=2", "--placer", "random:1")
        self.same("one", "many")
        # A run that goes on.
        half = self.STEPS // 2
        self.train("again", "--local", "ps=1,worker=2", steps=half)
        self.train("again", "--local", "ps=1,worker=2")
        self.same("one", "again")

    def test_tasks_started_by_hand(self):
        self.train("one")
        _, file = self.cluster("ps=1,worker=2") # ports of loopback
        self.train("many", "--cluster", file)
        self.same("one", "many")

    def test_killed_in_the_middle(self):
        self.train("one")
        p = self.start("train", self.GRAPH, "--checkpoint",
                       self.path / "killed", "--steps", self.STEPS, "--local",
                       "ps=1,worker=2")
        for line in p.stderr: # the tasks' lines, then those of the steps
            if "begun" in line and not LONG or "event=checkpoint" in line:
                break
        p.kill()
        p.wait()
        self.train("killed", "--local", "ps=1,worker=2")
        self.same("one", "killed")


class ByHand(Case):
    def test_tasks_serve_one_driver_after_the_other(self):
        tasks, file = self.cluster("ps=1,worker=2")
        alone = self.weir("run", "graphs/tiny_matmul.weir.yaml", "--json", "-q")
        for _ in range(3):
            p = self.weir("run", "graphs/tiny_matmul.weir.yaml", "--json", "-q",
                          "--cluster", file, "--placer", "round_robin")
            self.assertEqual(p.stdout, alone.stdout)
        for number, name in ((signal.SIGTERM, "ps:0"),
                             (signal.SIGINT, "worker:0")):
            tasks[name].send_signal(number)
            self.assertEqual(tasks[name].wait(HANG), 128 + number)

    def test_a_task_that_was_never_started(self):
        worker, at = self.task("worker", 0, "ps=1,worker=1")
        file = self.path / "c.yaml"
        file.write_text(f'ps: ["127.0.0.1:9"]\nworker: ["{at}"]\n')
        said = queue.Queue()
        threading.Thread(target=lambda: [said.put(line) for line in
                                         worker.stderr], daemon=True).start()
        line = ""
        for _ in range(20):  # a driver's last words may be lost with it
            p = self.weir("run", "graphs/tiny_matmul.weir.yaml", "--cluster",
                          file, "--start-timeout", "3s", code=138)
            self.assertRegex(p.stderr, r"error\[W7022\]: 1 of 2 tasks are "
                             "missing: ps:0 at 127.0.0.1:9: cannot be reached: "
                             ".*refused")
            self.assertEqual(p.stderr.count("ps:0"), 1)
            self.assertEqual(p.stderr.count("127.0.0.1:9"), 1)
            self.assertIsNone(worker.poll())
            with contextlib.suppress(queue.Empty):
                while "gives up" not in line:
                    line = said.get(timeout=1)
            if "gives up" in line:
                break
        # The task knows who was missing, too.
        self.assertIn("gives up", line)
        self.assertIn("ps:0 at 127.0.0.1:9: cannot be reached", line)

    def test_a_driver_that_never_comes(self):
        spec = "ps=1,worker=1"
        p = self.weir("task", "--job", "ps", "--cluster", spec, "--listen",
                      f"unix:{self.path}/s", "--start-timeout", "100ms", "-q",
                      code=138)
        self.assertIn("error[W7025]: no driver has begun a session with ps:0 at"
                      f" unix:{self.path}/s within 0.1 s: none has connected",
                      p.stderr)
        # One that came in time may take its own.
        file = self.path / "c.yaml"
        file.write_text(f'worker: ["unix:{self.path}/w"]\n')
        p = self.start("task", "--job", "worker", "--cluster", file,
                       "--start-timeout", "100s")
        self.assertIn("listening", p.stderr.readline())
        self.weir("run", "graphs/tiny_matmul.weir.yaml", "--cluster", file)
        p.terminate()
        self.assertEqual(p.wait(HANG), 143)

    def test_another_cluster(self):
        _, at = self.task("worker", 0, "worker=1")
        file = self.path / "c.yaml"
        file.write_text(f'ps: ["127.0.0.1:9"]\nworker: ["{at}"]\n')
        p = self.weir("run", "graphs/tiny_matmul.weir.yaml", "--cluster", file,
                      "--start-timeout", "1s", code=138)
        self.assertIn("worker:0", p.stderr)

    def test_a_port_and_a_path_in_use(self):
        for address in ("127.0.0.1:0", f"unix:{self.path}/s"):
            _, at = self.task("worker", 0, "worker=1", address)
            p = self.weir("task", "--job", "worker", "--cluster", "worker=1",
                          "--listen", at, code=2)
            self.assertIn("error[W7002]", p.stderr)
            self.assertIn(at.split("/")[-1], p.stderr)


class Own(Case):
    """The driver's process is a task itself; tasks meet at sockets."""
    GRAPH = "graphs/mlp.weir.yaml"
    FEED = ("-i", "x=random")

    def setUp(self):
        super().setUp()
        at = {name: f"unix:{self.path}/{name}" for name in ("ps0", "w0", "w1")}
        self.section = (f'ps: ["{at["ps0"]}"]\n'
                        f'worker: ["{at["w0"]}", {{address: "{at["w1"]}"}}]\n')
        self.file = self.path / "c.yaml"
        self.file.write_text(self.section)
        self.other = [self.serve("ps", 0), self.serve("worker", 1)]

    def serve(self, job, index):
        p = self.start("task", "--job", job, "--index", index, "--cluster",
                       self.file, "--threads", 1)
        self.assertIn(f"listening at unix:{self.path}/", p.stderr.readline())
        return p

    def runs_again(self):
        """Its address is free, and so are the others once they have heard."""
        p = None
        while p is None or p.returncode:
            p = self.weir("run", self.GRAPH, *self.FEED, "-q", "--cluster",
                          self.file, "--job", "worker", code=None)
            if p.returncode:
                self.assertIn("error[W7024]", p.stderr)

    def test_bits_of_one_process(self):
        alone = self.weir("run", self.GRAPH, *self.FEED, "--json", "-q")
        for placer in ("round_robin", "random:2"):
            p = self.weir("run", self.GRAPH, *self.FEED, "--json", "--cluster",
                          self.file, "--job", "worker", "--placer", placer)
            self.assertEqual(p.stdout, alone.stdout)
            self.assertIn("[worker:0] the session is over", p.stderr)
        text = (ROOT / self.GRAPH).read_text() + "cluster:\n" + re.sub(
            "(?m)^", "  ", self.section).rstrip() + "\n"
        graph = self.graph(text)
        p = self.weir("run", graph, *self.FEED, "--json", "--cluster", "graph",
                      "--job", "worker", "--placer", "round_robin")
        self.assertEqual(p.stdout, alone.stdout)
        self.assertEqual([p.poll() for p in self.other], [None, None])

    def test_weights_of_one_process(self):
        for to, words in (("one", ()), ("many", ("--cluster", self.file,
                                                 "--job", "worker", "--index",
                                                 0, "--placer", "random:1"))):
            self.weir("train", Train.GRAPH, "--steps", 3, "--checkpoint",
                      self.path / to, *words)
        self.weir("checkpoint", "diff", self.path / "one", self.path / "many")

    def test_a_task_that_serves_already(self):
        p = self.weir("run", self.GRAPH, *self.FEED, "--cluster", self.file,
                      "--job", "worker", "--index", 1, code=2)
        self.assertIn("error[W7002]", p.stderr)
        self.assertIn("another process listens there", p.stderr)
        self.assertIn("leave out --job", p.stderr)
        p = self.weir("run", self.GRAPH, *self.FEED, "--cluster", self.file,
                      "--job", "gpu", code=2)
        self.assertIn("no job gpu", p.stderr)

    def test_signals_are_those_of_a_driver(self):
        slow = self.graph(SLOW)
        p = self.start("run", slow, "--cluster", self.file, "--job", "worker")
        self.until_begun(p)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(HANG), 130)
        self.runs_again()

    def test_the_driver_is_killed(self):
        p = self.start("run", self.graph(SLOW), "--cluster", self.file, "--job",
                       "worker", "--heartbeat", "200ms")
        self.until_begun(p)
        p.kill()
        p.wait()
        self.runs_again()


class Faults(Case):
    """A run without an end, and a task of it that is lost."""

    def lose(self, number):
        tasks, file = self.cluster("worker=2")
        driver = self.start("run", self.graph(SLOW), "--cluster", file,
                            "--placer", "round_robin", "--heartbeat", "200ms",
                            "--step-timeout", "100s")
        self.until_begun(tasks["worker:1"])
        tasks["worker:1"].send_signal(number)
        _, err = driver.communicate(timeout=HANG)
        self.assertEqual(driver.returncode, 138, err)
        self.assertRegex(err, r"error\[W702[02]\]") # in the start, or later
        self.assertIn("worker:1", err)
        self.assertIsNone(tasks["worker:0"].poll())

    def test_killed(self):
        self.lose(signal.SIGKILL)

    def test_stopped(self):
        self.lose(signal.SIGSTOP)

    def test_a_task_of_local_that_dies_at_once(self):
        """Nobody waits for it: the start timeout is above the test's."""
        p = self.start("run", "-", "--local", "worker=2", "--start-timeout",
                       "10000s", stdin=subprocess.PIPE)
        listening = 0
        while listening < 2:  # the driver waits for its graph
            line = p.stderr.readline()
            self.assertTrue(line, "the driver has ended")
            listening += "listening" in line
        children = pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children")
        for child in children.read_text().split():
            words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes()
            if b"\0--index\x001\0" in words:
                os.kill(int(child), signal.SIGKILL)
        _, err = p.communicate(SLOW, timeout=HANG)
        self.assertEqual(p.returncode, 138, err)
        self.assertIn("error[W7022]: worker:1 has ended by itself (signal 9)",
                      err)
        self.nothing_left(str(self.path))

    def test_a_driver_that_is_killed_leaves_nothing(self):
        p = self.start("run", self.graph(SLOW), "--local", "worker=2")
        self.until_begun(p)
        p.kill()
        p.wait()
        while p.stderr.read(): # until the tasks, which have it too, are gone
            pass
        left = [f for f in os.listdir(self.path) if f.startswith("weir-")]
        self.assertEqual(len(left), 1)
        self.weir("run", "graphs/tiny_matmul.weir.yaml", "--local", "worker=1")
        self.nothing_left(str(self.path)) # the next one has cleaned up


class Options(Case):
    def test_options_that_exclude_each_other(self):
        graph = "graphs/tiny_matmul.weir.yaml"
        for words, says in (
                (("--local", "worker=1", "--in-process", "worker=1"),
                 "--local and --in-process"),
                (("--cluster", "c.yaml", "--in-process", "worker=1"),
                 "--cluster and --in-process"),
                (("--cluster", "c.yaml", "--local", "worker=1"),
                 "--local and --cluster"),
                (("--heartbeat", "1s"), "without --cluster or --local"),
                (("--local", "worker=1", "--job", "worker"),
                 "--job has no effect without --cluster"),
                (("--cluster", "c.yaml", "--index", "1"),
                 "--index has no effect without --job"),
                (("--local", "worker=1", "--trace", "t"),
                 "--trace and --local")):
            p = self.weir("run", graph, *words, code=2)
            self.assertIn(says, p.stderr)
        p = self.weir("run", graph, "--cluster", "worker=1", code=2)
        self.assertIn("no address of task worker:0", p.stderr)
        p = self.weir("task", "--job", "ps", "--cluster", "worker=1", code=2)
        self.assertIn("no job ps", p.stderr)
        p = self.weir("task", "--job", "worker", "--index", 3, "--cluster",
                      "worker=1", code=2)
        self.assertIn("index 3", p.stderr)

    def test_clusters_that_are_refused(self):
        graph = "graphs/tiny_matmul.weir.yaml"
        file = self.path / "c.yaml"
        many = json.dumps([f"a:{i + 1}" for i in range(10000)])
        for text, says in (
                ("worker: []", "1 to 512 tasks"),
                (f"worker: {many}", "1 to 512 tasks"),
                ('worker: ["a:1", "a:1"]', "given twice: a:1"),
                ('worker: ["127.0.0.1:0"]', "not an address: 127.0.0.1:0"),
                ('worker: ["127.0.0.1:65536"]', "not an address"),
                ('worker: {tasks: 3, addresses: ["a:1"]}', "as many tasks"),
                ('worker: {0: "a:1", 2: "a:2"}', "no such key of a job")):
            file.write_text(text + "\n")
            p = self.weir("run", graph, "--cluster", file, code=2)
            self.assertIn(says, p.stderr)

    def test_no_grpc_without_a_cluster(self):
        p = self.weir("run", "graphs/tiny_matmul.weir.yaml", "-q",
                      "--in-process", "ps=1,worker=1")
        for ways, loaded in ((("--in-process", "worker=1"), False),
                             (("--local", "worker=1"), True)):
            p = subprocess.run(
                [WEIR, "run", "graphs/tiny_matmul.weir.yaml", "-q", *ways],
                cwd=ROOT, env={**ENV, "LD_DEBUG": "files"}, timeout=HANG,
                capture_output=True, text=True)
            self.assertEqual("libgrpc.so" in p.stderr, loaded, ways)


if __name__ == "__main__":
    names = [w for w in WORDS if w not in ("all", "long")]
    unittest.main(argv=[sys.argv[0], "-v", *names])
