# SPDX-License-Identifier: Apache-2.0
"""Writes small texts under the names of the fortunes, which language models
read: lines of a few words. The texts themselves may be missing on a machine."""
import os
import random

NAMES = ("art", "computers", "cookie", "definitions", "education", "law",
         "literature", "men-women", "miscellaneous", "people", "politics",
         "science", "wisdom", "work")
STEMS = "the cat sees some dogs and runs to an old tree".split()
WORDS = [stem + end for stem in STEMS for end in ("", "s", "er", "ing")]
LINES, LENGTH = 40, 20


def write(folder):
    noise = random.Random(7)
    for name in NAMES:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            for _ in range(LINES):
                words = (noise.choice(WORDS) for _ in range(LENGTH))
                f.write(" ".join(words) + ".\n%\n")
