#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The times that tools/test writes down, and the table of them at its end.

  test_times.py rows TESTLOG FLAVOUR BUILD_S TEST_S   rows of one flavour
  test_times.py table ROWS TOTAL_S                    the table of all rows

A row is "pass|skip|fail FLAVOUR NAME" or "time FLAVOUR WHAT TESTS SECONDS". Parts
that a test skips have rows too: NAME/PART.
"""
import collections
import json
import re
import sys

KINDS = {"OK": "pass", "EXPECTEDFAIL": "pass", "SKIP": "skip"}
SLOWEST = 5


def suite_of(name):
    """"weir:quick+lint / lint_docs" is of suite lint."""
    return min(name.split(" / ")[0].rsplit(":", 1)[-1].split("+"))


def parts(test):
    """Skipped parts: cmocka names each, unittest counts them."""
    names = set(re.findall(r"^\[  SKIPPED \] (\w+)$", test.get("stdout") or "",
                           re.M))
    m = re.search(r"^OK \(skipped=(\d+)\)$", test.get("stderr") or "", re.M)
    return sorted(names) + ([f"{m.group(1)}-cases"] if m else [])


def rows(path, flavour, build_s, test_s):
    try:
        with open(path, encoding="utf-8") as f:
            tests = [json.loads(line) for line in f]
    except OSError:
        tests = []
    if not tests:
        print("fail", flavour, "ran no test")
    suites = collections.defaultdict(list)
    for t in tests:
        print(KINDS.get(t["result"], "fail"), flavour,
              t["name"].split(" / ")[-1])
        for part in parts(t):
            print("skip", flavour, t["name"].split(" / ")[-1] + "/" + part)
        suites[suite_of(t["name"])].append(t["duration"])
    print("time", flavour, "build", 0, build_s)
    for suite, times in sorted(suites.items()):
        print("time", flavour, suite, len(times), f"{sum(times):.0f}")
    print("time", flavour, "tests", len(tests), test_s)
    for t in sorted(tests, key=lambda t: -t["duration"])[:SLOWEST]:
        print("slow", flavour, t["name"].split(" / ")[-1],
              f"{t['duration']:.0f} s")


def table(path, total_s):
    slow = collections.defaultdict(list)
    print("\nflavour  what         tests  seconds")
    with open(path, encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if words[0] == "time":
                _, flavour, what, tests, seconds = words
                what = {"build": "build", "tests": "all, wall"}.get(
                    what, "suite " + what)
                print(f"{flavour:7}  {what:11}  {tests if tests != '0' else '':>5}"
                      f"  {seconds:>7}")
            elif words[0] == "slow":
                slow[words[1]].append(" ".join(words[2:]))
    for flavour, tests in slow.items():
        print(f"slowest, {flavour}: " + ", ".join(tests))
    minutes, seconds = divmod(int(total_s), 60)
    print(f"in all   {minutes} min {seconds:02} s (seconds of a suite are those "
          "of its tests, several of which run at once)")


if sys.argv[1] == "rows":
    rows(*sys.argv[2:])
else:
    table(*sys.argv[2:])
