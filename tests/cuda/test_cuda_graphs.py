#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs and trainings on GPUs, as commands, on the stand-in for CUDA, or on
the CUDA of WEIR_CUDA_FOLDER; and what commands say of GPUs that are not there,
that are lost and that are full.

  test_cuda_graphs.py WEIR SOURCE_ROOT BUILD_DIR [CASE...] [--long]

--long: more places of each graph, and seeds of the stand-in's order.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

WEIR, ROOT, BUILD = (os.path.abspath(a) for a in sys.argv[1:4])
WORDS = sys.argv[4:]
LONG = "--long" in WORDS
# Under a sanitizer commands are slow: each graph and training once.
SANITIZED = "CLI_SANITIZED" in os.environ
once = unittest.skipIf(SANITIZED, "the same code more often")
sys.path.insert(0, os.path.join(ROOT, "tests", "gpu"))
sys.path.insert(1, os.path.join(ROOT, "tests"))
import cases  # noqa: E402
import images  # noqa: E402
import processes  # noqa: E402
import texts  # noqa: E402

GRAPHS = os.path.join(ROOT, "graphs")
STANDIN = os.path.join(BUILD, "standin")
BARE = os.path.join(BUILD, "bare")  # libraries that are no good
CUDA = os.environ.get("WEIR_CUDA_FOLDER", STANDIN)
ENV = {k: v for k, v in os.environ.items()
       if not k.startswith(("WEIR_", "STANDIN_", "LD_LIBRARY_PATH"))}
HANG = 100  # seconds: an end for what would hang
ONE_GPU = cases.WAYS["one"].cluster
WAITED = r", after a wait of (\d+\.\d) s$"  # as long as the machine took


def command(*args, cuda=CUDA, **more):
    """A finished `weir`; |cuda| None: the machine has no libraries of CUDA."""
    env = {**ENV, **({"LD_LIBRARY_PATH": cuda} if cuda else {}), **more}
    return subprocess.run([WEIR, *map(str, args)], env=env, timeout=HANG,
                          capture_output=True, text=True)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-gpu-")
        self.addCleanup(folder.cleanup)
        self.work = folder.name

    def weir(self, *args, code=0, **more):
        p = command(*args, **more)
        self.assertEqual(p.returncode, code, f"{args}: {p.stdout}{p.stderr}")
        self.assertNotIn("Sanitizer", p.stderr)
        return p

    def caller(self, **more):
        """`weir` as cases.py calls it."""
        def weir(*args):
            p = command(*args, **more)
            if p.returncode != 0:
                raise cases.Failure(f"{args}: exit status {p.returncode}\n"
                                    f"{p.stdout}{p.stderr}")
            return p.stdout, p.stderr
        return weir

    def graph(self, name, rules=cases.ALL_ON_GPU):
        return cases.copied(name, GRAPHS, self.work, rules)

    def on_standin(self):
        if CUDA != STANDIN:
            self.skipTest("this needs the stand-in")


class Run(Case):
    def check(self, row, way, seed, **more):
        nodes, crossed, words = 0, 0, ""
        with self.subTest(graph=row.name, way=way.name, seed=seed, **more), \
                tempfile.TemporaryDirectory(dir=self.work) as work:
            nodes, crossed, words = cases.run_graph(
                self.caller(**more), row, way, (GRAPHS, work), seed)
            ran = re.search(r"^ran \d+ nodes? in .* on (.*)$", words, re.M)
            if nodes > 0:
                self.assertIn("/device:GPU:", ran.group(1))
            if crossed > 0:
                self.assertRegex(ran.group(1), r"^\d+ devices: ")
        return nodes, crossed, words

    def test_every_graph_is_listed(self):
        files = {p.name.split(".")[0] for p in
                 pathlib.Path(GRAPHS).glob("*.weir.yaml")}
        self.assertEqual(files, {g.name for g in cases.GRAPHS} |
                         set(cases.NETWORKS))

    def test_all_nodes_on_one_gpu(self):
        for row in cases.GRAPHS:
            nodes, _, _ = self.check(row, cases.WAYS["one"], 1)
            self.assertGreater(nodes, 0, row.name)

    def test_recurrent_layers_are_on_the_gpu(self):
        for name in ("lstm_lm", "rnn_char", "recurrent"):
            p = self.weir("place", self.graph(name), "--cluster",
                          "worker=1,gpu=1")
            self.assertRegex(p.stdout, r"GPU:0 +[1-9]\d* nodes")
            self.assertNotIn("no GPU kernel", p.stdout)

    def product(self):
        """A graph of one product, whose bits tell how it was made."""
        path = os.path.join(self.work, "product.weir.yaml")
        pathlib.Path(path).write_text(
            "weir: 1\ninputs:\n  x: f32[8, 64] = uniform(-1, 1, seed=3)\n"
            "  w: f32[64, 32] = uniform(-1, 1, seed=4)\n"
            "nodes: {y: 'matmul(x, w)'}\noutputs: [y]\nplacement: "
            "[{match: '*', device: 'gpu:0', soft: true}]\n", "utf-8")
        return path

    def test_tf32_is_an_option_of_the_run(self):
        graph = self.product()
        local = ("--local", "worker=1,gpu=1")
        plain, quick = (
            {self.weir("run", graph, *job, *more, "-q").stdout
             for job in (ONE_GPU, local)} for more in ((), ("--tf32",)))
        self.assertEqual((len(plain), len(quick)), (1, 1))
        if CUDA == STANDIN:  # a real one may, and need not
            self.assertNotEqual(plain, quick)
        for more, words in (((), "library\t"), (("--tf32",), "library, tf32\t")):
            p = self.weir("bench", graph, *ONE_GPU, *more, "--explain",
                          "--runs", 1)
            self.assertIn("\tgpu.matmul\tthe device's " + words, p.stdout)
        self.assertEqual(*(self.weir("run", graph, *more, "-q").stdout
                           for more in ((), ("--tf32",))))  # a CPU

    def test_a_file_keeps_the_quickest(self):
        graph, path = self.product(), os.path.join(self.work, "tuned.yaml")
        file = pathlib.Path(path)
        jobs = ONE_GPU, ("--local", "worker=1,gpu=1")
        for job in jobs:
            first = self.weir("run", graph, *job, "--tune", path, "-q",
                              STANDIN_QUICKEST="2")
            text = file.read_text("utf-8")
            self.assertEqual(text.count("type: f32"), 1)
            if CUDA == STANDIN:
                self.assertIn(" id: 2,", text)
            for other in jobs:
                p = self.weir("run", graph, *other, "--tune", path, "-q",
                              STANDIN_QUICKEST="1")
                self.assertEqual((p.stdout, p.stderr), (first.stdout, ""))
            self.assertEqual(file.read_text("utf-8"), text)
            file.unlink()
        if CUDA == STANDIN:  # its algorithms have bits of their own
            p = self.weir("run", graph, *ONE_GPU, "--tune", path, "-q",
                          STANDIN_QUICKEST="1")
            self.assertNotEqual(p.stdout, first.stdout)

    def test_a_file_of_no_use_is_one_warning(self):
        graph, path = self.product(), os.path.join(self.work, "tuned.yaml")
        file = pathlib.Path(path)
        plain = self.weir("run", graph, *ONE_GPU, "-q").stdout
        self.weir("run", graph, *ONE_GPU, "--tune", path)
        text = file.read_text("utf-8")
        # The driver, too, reads all lines; the library is the task's alone.
        for was, becomes, says, readers in (
                ("library: 'cuBLASLt", "library: 'other", "nothing is timed", 1),
                ("m: 8", "m: x", r"tuned\.yaml:7:\d+: expected an integer", 2)):
            file.write_text(text.replace(was, becomes), "utf-8")
            for job, most in ((ONE_GPU, 1), (("--local", "worker=1,gpu=1"), 2)):
                p = self.weir("run", graph, *job, "--tune", path, "-q")
                self.assertEqual(p.stdout, plain)
                self.assertRegex(p.stderr, f"warning: .*{says}.* \\[W6006\\]\n$")
                self.assertEqual(p.stderr.count("W6006"), min(readers, most))
        for bad, code, error in (("", 6, "W5009"), (self.work, 5, "W4002"),
                                 ("/nowhere/file", 6, "W5009")):
            p = self.weir("run", graph, *ONE_GPU, "--tune", bad, code=code)
            self.assertIn(f"error[{error}]", p.stderr)

    def test_why_a_step_is_no_graph(self):
        graph, said = self.graph("mlp"), "GPU 0: work is queued call by call"
        p = self.weir("run", self.graph("newton"), *ONE_GPU, "-v")
        self.assertIn(said + ", not as a graph: a while, an if or a scan with "
                      "a count waits for a value", p.stderr)
        for more, why in ((("--trap-nan",), "looked at for NaN"),
                          (("--trace", self.work + "/t.json"), "a trace has"),
                          ((), None)):
            p = self.weir("run", graph, "-p", "batch=4", *ONE_GPU, "-v", *more)
            self.assertEqual(p.stderr.count(said), 1 if why else 0, p.stderr)
            self.assertIn(why or "", p.stderr)
        p = self.weir("run", graph, "-p", "batch=4", *ONE_GPU, "--trap-nan")
        self.assertNotIn(said, p.stderr)

    def spread(self, way, seeds):
        """Every graph has nodes on GPUs in one of its places, and values that
        cross; how many came from other tasks."""
        came = 0
        for row in cases.GRAPHS:
            counts = [self.check(row, cases.WAYS[way], s) for s in seeds]
            self.assertGreater(max(c[0] for c in counts), 0, row.name)
            if row.name != "lstm_scan":  # few units, maybe of one task
                self.assertGreater(max(c[1] for c in counts), 0, row.name)
            for _, _, words in counts:
                came += sum(map(int, re.findall(
                    r"(\d+) values?, \S+ \S+ from other tasks$", words, re.M)))
        return came

    def test_spread_over_two_gpus(self):
        self.spread("spread", (1, 2, 3, 4) if LONG else (2,))

    @once
    def test_spread_over_processes(self):
        came = self.spread("local", (1, 2, 3) if LONG else (1,))
        self.assertGreater(came, 100)

    @once
    def test_any_order_of_the_standin(self):
        """Streams that move when they like: an order that nobody asked for
        gives other values."""
        self.on_standin()
        for row in cases.GRAPHS:
            if LONG or row.name in ("lenet_train", "wide", "mlp_mesh",
                                    "transformer_train"):
                for seed in range(1, 9 if LONG else 3):
                    self.check(row, cases.WAYS["spread"], 1,
                               STANDIN_SEED=str(seed))


class Data(Case):
    """Tests with the images and texts."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="weir-images-")
        cls.addClassCleanup(folder.cleanup)
        cls.data = folder.name
        images.write(cls.data)
        texts.write(cls.data)


class Train(Data):

    def test_checkpoints_of_the_cpu(self):
        for way in cases.TRAIN_WAYS.values():
            for row in cases.TRAININGS:
                if SANITIZED and row.name not in ("mlp_train", "lenet_train"):
                    continue
                with self.subTest(graph=row.name, way=way.name), \
                        tempfile.TemporaryDirectory(dir=self.work) as work:
                    nodes, crossed, words = cases.train_graph(
                        self.caller(), row, way, (GRAPHS, work, self.data))
                    self.assertGreater(nodes, 20)
                    if way.spread:
                        self.assertGreater(crossed, 10)
                        self.assertRegex(words, r"[1-9]\d* values?, \S+ \S+ "
                                         "from other tasks")

    def test_workers_between_graphs(self):
        """Parameter servers on CPUs, workers on GPUs."""
        row = cases.TRAININGS[0]
        t = cases.Trained(self.caller(), row, cases.TRAIN_WAYS["one"],
                          (GRAPHS, self.work, self.data))
        mode = ("--set", "train.mode=sync(aggregate=2)", "--local")
        t.train("cpu", *mode, "ps=1,worker=2")
        for name in ("gpu", "again"):
            t.train(name, *mode, "ps=1,worker=2,gpu=1")
        t.same("gpu", "again")
        t.same("cpu", "gpu", row.near)
        self.on_standin()  # GPUs compute: one that is lost ends the job
        with self.assertRaises(cases.Failure) as e:
            self.caller(STANDIN_LOSE_AT="300")(
                "train", t.path, *t.common, "--steps", "6", *mode,
                "ps=1,worker=2,gpu=1")
        self.assertIn("W6004", str(e.exception))

    @once
    def test_resumed(self):
        for way in cases.TRAIN_WAYS.values():
            with tempfile.TemporaryDirectory(dir=self.work) as work:
                t = cases.Trained(self.caller(), cases.TRAININGS[0], way,
                                  (GRAPHS, work, self.data))
                t.on_gpu("straight")
                t.on_gpu("halves", steps=cases.STEPS // 2)
                t.on_gpu("halves")
                t.same("straight", "halves")
                # What a GPU began, the CPU ends.
                t.on_gpu("mixed", steps=cases.STEPS // 2)
                t.train("mixed")
                t.same("straight", "mixed", cases.TRAININGS[0].near)

    @once
    def test_seeds(self):
        t = cases.Trained(self.caller(), cases.TRAININGS[0],
                          cases.TRAIN_WAYS["one"],
                          (GRAPHS, self.work, self.data))
        t.on_gpu("five", "--seed", "5")
        t.train("cpu five", "--seed", "5")
        t.on_gpu("six", "--seed", "6")
        t.same("five", "cpu five", cases.TRAININGS[0].near)
        with self.assertRaises(cases.Failure):
            t.same("five", "six", cases.TRAININGS[0].near)


class Missing(Case):
    """A machine without a GPU."""

    def test_the_cpu_does_it_and_one_warning(self):
        graph = self.graph("regression")
        alone = self.weir("run", graph, "--json", cuda=BARE).stdout
        for args in (("run", graph, "--json"), ("bench", graph, "--runs", 2),
                     ("train", self.train_graph(), "--steps", 2)):
            p = self.weir(*args, *ONE_GPU, cuda=BARE)
            self.assertEqual((p.stdout + p.stderr).count("warning[W6004]"), 1,
                             p.stdout + p.stderr)
            if args[0] == "run":
                self.assertEqual(p.stdout, alone)

    def train_graph(self):
        path = os.path.join(self.work, "t.weir.yaml")
        pathlib.Path(path).write_text(
            "weir: 1\ninputs: {x: 'f32[1, 2]'}\nnodes:\n"
            "  loss: mean(square(sub(var([2], init=zeros()), x)))\n"
            "data: {train: {source: memory, values: {x: [[1, 2]]}, batch: 1}}\n"
            "outputs: [loss]\n"
            "train: {minimize: loss, optimizer: sgd(lr=0.1), epochs: 9}\n",
            "utf-8")
        return path

    def test_no_library(self):
        """What this machine has by itself, if that is no GPU."""
        if re.search(r"^cuda .*\d GPUs?:", self.weir("doctor", cuda=None).stdout,
                     re.M):
            self.skipTest("this machine has GPUs")
        p = self.weir("run", self.graph("regression"), *ONE_GPU, cuda=None)
        self.assertEqual(p.stderr.count("W6004"), 1, p.stderr)

    def test_a_plan_that_names_a_gpu(self):
        graph, plan = self.graph("regression"), self.work + "/plan.json"
        local = ("--local", "worker=1,gpu=1")
        self.weir("run", graph, *local, "--save-plan", plan)
        self.weir("run", graph, *local, "--plan", plan)
        p = self.weir("run", graph, *local, "--plan", plan, cuda=BARE, code=7)
        self.assertRegex(p.stderr, r"error\[W6004\]: worker:0: libcudart.so.13 "
                         r"has no function \w+\n.*the plan puts nodes on "
                         "/job:worker/task:0/device:GPU:0")

    def test_plans_for_gpus_elsewhere(self):
        p = self.weir("place", self.graph("mlp"), "--cluster", "worker=1,gpu=2",
                      cuda=BARE)
        self.assertRegex(p.stdout, r"GPU:0 +[1-9]\d* nodes")
        self.assertIn("GPU:1", p.stdout)
        self.assertNotIn("W6004", p.stderr)


class Bad(Data):
    def test_more_gpus_than_there_are(self):
        rules = "  - {match: '*', device: 'gpu:15', soft: true}\n"
        for job in (("--in-process", "worker=1,gpu=16"),
                    ("--local", "worker=1,gpu=16")):
            p = self.weir("run", self.graph("regression", rules), *job, code=7)
            self.assertRegex(p.stderr, r"error\[W6004\]: .*GPU (2|15)\b.*")

    def lose(self, *args):
        """A GPU that is lost at one call after the other."""
        self.on_standin()
        codes, said = set(), ""
        bodies = pathlib.Path(ROOT, "kernels", "cuda", "bodies.def").read_text(
            "utf-8").count("\nWEIR_CUDA_BODY(")
        start = (1, 2, 5, 9, 15, 22, 30, 40, bodies // 2, bodies)
        later = (30, 40, 50, 60, 90, 10000)  # once all bodies are found
        for k in (*start, *(bodies + n for n in later)):
            p = command(*args, STANDIN_LOSE_AT=str(k))
            codes.add(p.returncode)
            said += p.stdout + p.stderr
            # Lost before the placing, it is as if it were not there.
            failed = "W6004" in p.stderr.replace("warning[W6004]", "")
            self.assertEqual(p.returncode, 7 if failed else 0,
                             f"call {k}: {p.stderr}")
        self.assertEqual(codes, {0, 7}, said)
        self.assertIn("GPU 0 is lost: an illegal memory access", said)
        self.assertNotIn("Sanitizer", said)

    def test_a_gpu_lost_in_mid_run(self):
        self.lose("run", self.graph("regression"), *ONE_GPU)

    def test_a_gpu_lost_in_another_process(self):
        self.lose("run", self.graph("regression"), "--local", "worker=1,gpu=1",
                  "--task-threads", 1)

    def test_a_gpu_lost_in_mid_training(self):
        self.lose("train", self.graph("logistic"), "--data-root", self.data,
                  "--steps", 3, *ONE_GPU)

    def test_memory_runs_out(self):
        self.on_standin()
        for job in (ONE_GPU, ("--local", "worker=1,gpu=1")):
            p = self.weir("run", self.graph("mlp"), *job, code=7,
                          STANDIN_MEMORY="1000000")
            self.assertRegex(p.stderr, r"error\[W6001\]: .*GPU 0")

    def two_tasks(self):
        """A graph for the GPUs of two tasks, which are one GPU."""
        path = os.path.join(self.work, "two.weir.yaml")
        pathlib.Path(path).write_text(
            "weir: 1\ninputs: {x: 'f32[256, 256] = uniform(-1, 1, seed=3)'}\n"
            "nodes:\n  a: mul(x, x)\n  b: tanh(add(a, x))\noutputs: [b]\n"
            "placement:\n"
            "  - {match: a, device: '/job:worker/task:0/gpu:0'}\n"
            "  - {match: '*', device: '/job:worker/task:1/gpu:0', soft: true}\n",
            "utf-8")
        return path

    def test_two_tasks_have_a_limit_each(self):
        graph = self.two_tasks()
        cluster = "worker=2,gpu=1,gpu_memory=900KiB"
        for job in ("--in-process", "--local"):
            p = self.weir("run", graph, job, cluster)
            self.assertRegex(p.stderr, r"ran .* 2 devices: \S*GPU:0, \S*GPU:0")
            # Runs at the same time have a frame each: 256 KiB on task 0,
            # 512 KiB on task 1. Either may be the first without room.
            p = self.weir("bench", graph, "--inflight", 4, "--runs", 10 ** 8,
                          "--threads", 4, job, cluster, code=7)
            self.assertRegex(
                p.stderr, r"error\[W6002\]: .*(262144|524288) bytes of GPU 0 "
                r"wanted, \d+ of (921600|1843200) in use, the limit")
            self.assertIn("`memory:` of the task's gpu", p.stderr)
        file = os.path.join(self.work, "c.yaml")
        pathlib.Path(file).write_text(
            "worker: {tasks: 2, gpu: {count: 1, memory: 900KiB}}\n", "utf-8")
        self.weir("run", graph, "--in-process", file)

    def test_memory_of_others_is_waited_for(self):
        self.on_standin()
        job = ("--device-wait", "60s", "--local",
               "worker=2,gpu=1,gpu_memory=2MiB")
        self.weir("run", self.two_tasks(), *job,
                  STANDIN_OTHERS="1073741824", STANDIN_OTHERS_TRIES="6")
        self.weir("run", self.graph("mlp"), "--device-wait", "60s", *ONE_GPU,
                  STANDIN_OTHERS="1073741824", STANDIN_OTHERS_TRIES="6")

    def test_a_wait_ends(self):
        self.on_standin()
        for wait, says in (((), "$"), (("--device-wait", "200ms"), WAITED)):
            for job, limit in ((ONE_GPU, ""),
                               (("--local", "worker=1,gpu=1,gpu_memory=64MiB"),
                                " of a limit of 67108864")):
                p = self.weir("run", self.graph("mlp"), *job, *wait, code=7,
                              STANDIN_OTHERS="1073000000")
                found = re.search(
                    r"(?m)error\[W6001\]: .*\d+ bytes of GPU 0 wanted,"
                    fr" \d+ are in use here{limit}, \d+ of 1073741824 are free "
                    r"there, other processes and CUDA itself hold 1073000000"
                    + says, p.stderr)
                self.assertTrue(found, p.stderr)
                if wait:
                    self.assertGreaterEqual(float(found.group(1)), 0.2)

    def test_a_signal_ends_a_wait(self):
        self.on_standin()
        env = {**ENV, "LD_LIBRARY_PATH": CUDA, "STANDIN_OTHERS": "1073000000"}
        p = subprocess.Popen([WEIR, "run", self.graph("mlp"), *ONE_GPU,
                              "--device-wait", "1h"], env=env, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(p.communicate)
        self.addCleanup(p.kill)
        processes.takes(p, signal.SIGINT)
        while not any("libcudart" in f for f in processes.maps(p)):
            self.assertIsNone(p.poll())
            time.sleep(0.01)
        time.sleep(0.3)  # by now it waits; if not, the signal is only early
        self.assertIsNone(p.poll())
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=HANG)
        self.assertEqual(p.returncode, 130, err)
        self.assertIn("W5005", err)

    def test_workers_between_graphs_have_limits(self):
        self.on_standin()
        row = cases.TRAININGS[0]
        t = cases.Trained(self.caller(), row, cases.TRAIN_WAYS["one"],
                          (GRAPHS, self.work, self.data))
        p = self.weir("train", t.path, *t.common, "--steps", 2, "--set",
                      "train.mode=sync(aggregate=1)", "--device-wait", "100ms",
                      "--local", "ps=1,worker=1,gpu=1,gpu_memory=64MiB", code=6,
                      STANDIN_OTHERS="1073741824")
        found = re.search(r"W6001.*GPU 0 wanted, 0 are in use here of a limit "
                          "of 67108864.*" + WAITED, p.stderr, re.M)
        self.assertTrue(found, p.stderr)
        self.assertGreaterEqual(float(found.group(1)), 0.1)

    def test_bad_waits_are_refused(self):
        for text in ("soon", "-1s", "4 pages"):
            p = self.weir("run", self.graph("mlp"), "--device-wait", text,
                          code=2)
            self.assertIn("--device-wait", p.stderr)


unittest.main(argv=sys.argv[:1] + [w for w in WORDS if w != "--long"])
