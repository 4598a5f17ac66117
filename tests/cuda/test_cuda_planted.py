#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bugs that the stand-in for CUDA plants (standin/bugs.def): each one is found
by a test of the real suites, which passes without it.

  test_cuda_planted.py BUILD_DIR      of tests/cuda

README.md says what each bug is.
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest
from collections import namedtuple

BUILD = os.path.abspath(sys.argv[1])
HERE = pathlib.Path(__file__).resolve().parent
ENV = {k: v for k, v in os.environ.items()
       if not k.startswith(("STANDIN_", "WEIR_CUDA_", "CMOCKA_",
                            "WEIR_TEST_FILTER"))}
HANG = 60  # seconds: an end for what would hang

# A bug; the program and its test, or run_gpu and its op; what the failure says.
Row = namedtuple("Row", "bug program test says")
LOST = "GPU 0 is lost: an illegal memory access"
ORDER = "the bits depend on the order of threads"
REFUSED = ": an unsupported value or parameter was passed"
WRONG = r"wrong: \S+, want"
ROWS = [Row(*r) for r in (
    ("no_wait", "device", "queues_are_ordered_by_events_alone", "difference"),
    ("no_wait", "gemm", "queues_are_ordered_by_events_alone", "x == 3"),
    ("no_wait", "graph", "graphs_are_ordered_by_events", "difference"),
    ("no_wait", "peer", "values_are_those_of_one_gpu", r"sum \d is"),
    ("early_mark", "device", "copies_are_not_done_at_once", '!= "after!"'),
    ("early_mark", "run", "a_steady_step_is_one_call", "step 0: "),
    ("no_sync", "device", "copies_are_not_done_at_once",
     '"nothing" != "after!"'),
    ("no_sync", "run", "a_steady_step_is_one_call", "step 0: "),
    ("early_end", "peer", "values_are_those_of_one_gpu", r"sum \d is"),
    ("busy_queue", "device", "conforms_under_many_orders", "0x1 != 0"),
    ("early_launch", "launch", "launches_are_done_late", "difference"),
    ("early_launch", "run", "values_are_the_hosts", "element 0 is"),
    ("freed_in_flight", "move", "transposes", LOST),
    ("freed_in_flight", "run", "a_steady_step_is_one_call", LOST),
    ("block_twice", "device", "freed_blocks_are_used_again",
     r"(0x[0-9a-f]+) == \1"),
    ("block_twice", "run", "a_steady_step_is_one_call", r"step \d: "),
    ("short_copy", "device", "copies_are_not_done_at_once", '!= "after!"'),
    ("leak", "device", "conforms_under_many_orders", "0x1 != 0"),
    ("leak", "run", "a_steady_step_is_one_call", "0x3 != 0"),
    ("wrong_gpu", "device", "device_peers", "GPU 1: cudaMemcpyPeerAsync"),
    ("launch_unchecked", "launch", "every_call_fails_once", "!= 0x"),
    ("launch_unchecked", "run", "every_call_fails_once",
     "no error, and other values"),
    ("stale_address", "graph", "graphs_follow_each_other", "difference"),
    ("stale_address", "run", "a_steady_step_is_one_call", "step 3: "),
    ("stale_bytes", "graph", "replays_give_what_calls_give", "value 1: "),
    ("stale_bytes", "run", "values_are_the_hosts", "element 0 is"),
    ("leading_dimension", "gemm", "batches_lie_side_by_side", WRONG),
    ("no_transpose", "gemm", "all_sizes", "GetHeuristic" + REFUSED),
    ("no_stride", "gemm", "batches_lie_side_by_side",
     "GetHeuristic" + REFUSED),
    ("no_epilogue", "gemm", "all_epilogues", WRONG),
    ("stale_bias", "gemm", "all_epilogues", WRONG),
    ("quick_sums", "gemm", "tf32_only_where_it_is_allowed",
     r"WEIR_GEMM_F32, x\) == x"),
    ("rounded_twice", "gemm", "sums_of_16_bits_are_rounded_once", WRONG),
    ("no_alignment", "gemm", "alignment_is_kept", "cublasLtMatmul" + REFUSED),
    ("no_zeros", "gemm", "empty_sums_are_zero_whatever_alpha_is", WRONG),
    ("first_barrier", "rows", "softmaxes", ORDER),
    ("first_barrier", "ops", "transpose", ORDER),
    ("later_barrier", "move", "transposes", ORDER),
    ("later_barrier", "index", "finds_one_in_each_row", ORDER),
    ("later_barrier", "ops", "layer_norm", r"gpu\.layer_norm: "),
    ("own_lane", "rows", "softmaxes", r"element 0 of 1: \S+, not 1"),
    ("own_lane", "ops", "layer_norm", r"gpu\.layer_norm: output 0"),
    ("last_block", "index", "sorts_and_sums", "difference"),
    ("no_refusal", "run", "refused_data_is_the_hosts_error", "!= WEIR_OK"),
    ("no_refusal", "ops", "div", "no error, want W5003: "),
)]


def run(program, test, **more):
    """Exit status, and all that a suite prints of one test."""
    if program == "ops":
        args = [os.path.join(BUILD, "ops", "run_gpu"), "--every", "401", test]
    else:
        args = [os.path.join(BUILD, "test_cuda_" + program)]
        more["WEIR_TEST_FILTER"] = test
    p = subprocess.run(args, env={**ENV, **more}, timeout=HANG, text=True,
                       errors="replace", capture_output=True)
    return p.returncode, p.stdout + p.stderr


def verdict(program, test, good):
    """The line that a suite prints at the test's end."""
    if program == "ops":
        return " 0 failures$" if good else " [1-9][0-9]* failures$"
    return rf"^\[ +{'OK' if good else 'FAILED'} +\] {test}$"


class Planted(unittest.TestCase):
    def check(self, program, test, good, **more):
        code, text = run(program, test, **more)
        if good:
            self.assertEqual(code, 0, text)
        else: # a signal, where the bug left the memory of others in disorder
            self.assertNotEqual(code, 0, text)
        self.assertRegex(text, re.compile(verdict(program, test, good), re.M))
        return text

    def test_tests_pass_without_a_bug(self):
        for program, test in sorted({(r.program, r.test) for r in ROWS}):
            with self.subTest(program=program, test=test):
                self.check(program, test, True)

    def test_bugs_are_found(self):
        for row in ROWS:
            with self.subTest(bug=row.bug, program=row.program):
                text = self.check(row.program, row.test, False,
                                  STANDIN_BUG=row.bug)
                self.assertRegex(text, row.says)

    def test_every_bug_is_listed(self):
        bugs = re.findall(r"^STANDIN_BUG\((\w+)\)$",
                          (HERE / "standin/bugs.def").read_text("utf-8"), re.M)
        told = re.findall(r"^\| `(\w+)` \|",
                          (HERE / "README.md").read_text("utf-8"), re.M)
        self.assertGreater(len(bugs), 12)
        self.assertEqual(told, bugs)
        self.assertEqual({r.bug for r in ROWS}, set(bugs))

    def test_no_such_bug(self):
        for name in ("typo", "none", ""):
            code, text = run("device", "device_copies", STANDIN_BUG=name)
            self.assertLess(code, 0, text)
            self.assertIn(f"STANDIN_BUG={name}: bugs.def has no such bug", text)


unittest.main(argv=sys.argv[:1])
