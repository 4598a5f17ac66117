#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu-check: what it makes of programs that fail, crash and hang, where it
finds CUDA's libraries, and a whole run on the stand-in.

  test_check.py BUILD_DIR
"""
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest

HERE, BUILD = os.path.dirname(os.path.abspath(__file__)), sys.argv[1]
sys.path.insert(0, HERE)
import cases  # noqa: E402
import find  # noqa: E402
import run  # noqa: E402
import sections  # noqa: E402

LACKING = len(sections.HOST) - 2  # of the small archive that is made here

CMOCKA = """[==========] Running 3 test(s).
[ RUN      ] sums
[       OK ] sums
[ RUN      ] counts
skipped, this needs the stand-in: counts
[  SKIPPED ] counts
[ RUN      ] copies
1 != 2
[  FAILED  ] copies
[==========] 3 test(s) run.
[  PASSED  ] 1 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] counts
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] copies
"""


def step(script, seconds=20):
    return run.step("x", ["sh", "-c", script], dict(os.environ), seconds)[0]


class Step(unittest.TestCase):
    def test_tests_of_a_program(self):
        r = run.tests_of("x", CMOCKA)
        self.assertEqual(r.passed, ["x/sums"])
        self.assertEqual(r.skipped,
                         ["x/counts: this needs the stand-in: counts"])
        self.assertEqual(r.failed, ["x/copies:\n    1 != 2"])

    def test_a_crash_keeps_the_last_lines(self):
        r = step("echo before; kill -SEGV $$")
        self.assertEqual(r.failed, ["x: ended by SIGSEGV\n    before"])

    def test_a_hang_ends_with_all_it_started(self):
        with tempfile.NamedTemporaryFile() as f:
            began = time.monotonic()
            r = step(f"echo begun; (sleep 60; echo late >{f.name}) & wait", 0.5)
            self.assertLess(time.monotonic() - began, 20)
            self.assertEqual(r.failed, ["x: ran longer than 0 s\n    begun"])

    def test_a_failure_without_tests(self):
        self.assertEqual(step("echo no GPU; exit 2").failed,
                         ["x: exit status 2\n    no GPU"])

    def test_a_failure_after_good_tests(self):
        r = step("echo '[ RUN      ] a'; echo '[       OK ] a'; exit 9")
        self.assertEqual((r.passed, len(r.failed)), (["x/a"], 1))

    def test_a_skip_and_a_success(self):
        self.assertEqual(step("echo why; exit 77").skipped, ["x: why"])
        self.assertEqual(step("true").passed, ["x"])

    def test_a_section_that_is_over(self):
        r = run.steps_until(time.monotonic(), [("x", ["true"], False)], {})
        self.assertEqual(r.skipped, ["x: the section's time is over"])
        self.assertEqual(r.passed, [])


class Find(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def put(self, folder, *names):
        path = os.path.join(self.folder, folder)
        os.makedirs(path, exist_ok=True)
        for name in names:
            with open(os.path.join(path, name), "w", encoding="utf-8"):
                pass
        return os.path.realpath(path)

    def test_the_option_is_a_toolkit_or_its_libraries(self):
        lib = self.put("cuda/lib64", *find.LIBRARIES)
        for named in ("cuda", "cuda/lib64"):
            folder, text = find.find_cuda(os.path.join(self.folder, named))
            self.assertEqual((folder, text), (lib, f"{lib}, by --cuda"))

    def test_libraries_that_lie_apart(self):
        one = self.put("cuda/lib64", find.LIBRARIES[0])
        two = self.put("cuda/lib", find.LIBRARIES[1])
        folder, text = find.find_cuda(os.path.join(self.folder, "cuda"))
        self.addCleanup(shutil.rmtree, folder)
        self.assertEqual(sorted(os.listdir(folder)), sorted(find.LIBRARIES))
        self.assertIn(one, text)
        self.assertIn(two, text)

    def test_a_library_that_is_missing(self):
        lib = self.put("cuda/lib", find.LIBRARIES[0])
        folder, text = find.find_cuda(os.path.dirname(lib))
        self.assertIsNone(folder)
        self.assertRegex(text, "no libcublasLt.so.13 in .*cuda/lib; name")


class Whole(unittest.TestCase):
    """An archive's folder with the programs of this build."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copytree(HERE, os.path.join(self.root, "check"))
        programs = os.path.join(self.root, "bin")
        os.mkdir(programs)
        for path in ("cli/weir", "libweir_cuda.so", "tests/cuda/test_cuda_gemm",
                     "tests/cuda/test_cuda_device"):
            shutil.copy2(os.path.join(BUILD, path), programs)

    def check(self, *arguments):
        report = os.path.join(self.root, "report.md")
        p = subprocess.run(
            [sys.executable, os.path.join(self.root, "check", "check.py"),
             "--report", report, *arguments], capture_output=True, text=True)
        text = ""
        if os.path.exists(report):
            with open(report, encoding="utf-8") as f:
                text = f.read()
        return p, text

    def test_on_the_standin(self):
        p, report = self.check("--standin", BUILD, "--section", "host",
                               "--section", "sanitizer")
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("No GPU", report.splitlines()[0])
        self.assertIn("stand-in 0 1073.7 MB", report)
        self.assertRegex(report, rf"\| host \| \d\d \| 0 \| {LACKING} \|")
        self.assertIn("- test_cuda_launch: not in this archive", report)
        self.assertIn("| sanitizer |", report)

    def test_graphs_on_the_standin(self):
        """Where the archive has no processes."""
        os.symlink(os.path.join(os.path.dirname(os.path.dirname(HERE)),
                                "graphs"), os.path.join(self.root, "graphs"))
        p, report = self.check("--standin", BUILD, "--section", "graphs",
                               "--section", "train")
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertRegex(report, r"\| graphs \| [34]\d \| 0 \| \d \|")
        self.assertRegex(report,
                         rf"\| train \| {len(cases.TRAININGS)} \| 0 \| 1 \|")
        self.assertIn("- local: libweir_grpc.so is not in this archive", report)

    def test_a_crash_does_not_stop_the_rest(self):
        path = os.path.join(self.root, "bin", "test_cuda_device")
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\necho lost; kill -ABRT $$\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        p, report = self.check("--standin", BUILD, "--section", "host")
        self.assertEqual(p.returncode, 1, p.stdout + p.stderr)
        self.assertIn("- test_cuda_device: ended by SIGABRT\n    lost", report)
        self.assertRegex(report, rf"\| host \| 12 \| 1 \| {LACKING} \|")

    def test_no_libraries(self):
        p, report = self.check("--cuda", self.root)
        self.assertEqual((p.returncode, report), (5, ""))
        self.assertIn("name the folder with --cuda", p.stderr)


unittest.main(argv=sys.argv[:1])
