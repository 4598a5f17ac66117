#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Skipped tests without a reason.

  test_skips.py LIST ROWS

LIST is tests/skips.txt; ROWS are those of test_times.py. Prints the skips of
ROWS that LIST does not name; exit status 1 if there are any.
"""
import sys


def reasons(path):
    """{(flavour, test)} of the list; its lines must be whole."""
    known = set()
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if not line.strip() or line.startswith("#"):
                continue
            words = line.split(None, 2)
            if len(words) < 3:
                sys.exit(f"{path}:{number}: expected flavours, test, reason")
            known |= {(flavour, words[1]) for flavour in words[0].split(",")}
    return known


def main(skips, rows):
    known = reasons(skips)
    bad = 0
    with open(rows, encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if words[:1] != ["skip"]:
                continue
            _, flavour, test = words
            if (flavour, test) not in known and ("all", test) not in known:
                print(f"skipped without a reason: {flavour} {test} ({skips} "
                      "lists reasons)")
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
