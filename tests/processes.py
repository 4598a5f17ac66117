# SPDX-License-Identifier: Apache-2.0
"""Tests call these to wait for an event of a running process, not for a time."""
import os
import pathlib
import re
import time


def takes(p, number, hang=300):
    """Waits until the process |p| takes the signal itself, by a handler or by a
    thread that waits for it while all block it, or until |p| has ended."""
    end = time.monotonic() + hang
    while p.poll() is None:
        text = pathlib.Path(f"/proc/{p.pid}/status").read_text()
        masks = re.findall(r"^Sig(?:Blk|Cgt):\s+(\w+)", text, re.M)
        if any(int(mask, 16) >> number - 1 & 1 for mask in masks):
            return
        if time.monotonic() > end:
            raise AssertionError(f"{p.args}: it does not take signal {number}")
        time.sleep(0.002)


def cpu_s(p):
    """Seconds that a process has computed."""
    text = pathlib.Path(f"/proc/{p.pid}/stat").read_text()
    words = text.rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def files(p):
    """Paths of the files that a process has open."""
    found = set()
    for link in pathlib.Path(f"/proc/{p.pid}/fd").iterdir():
        try:
            found.add(os.readlink(link))
        except OSError:
            pass  # closed meanwhile
    return found


def maps(p):
    """Paths of the files, libraries among them, that are in its memory."""
    text = pathlib.Path(f"/proc/{p.pid}/maps").read_text()
    return {w[5] for w in (line.split() for line in text.splitlines())
            if len(w) > 5}
