# SPDX-License-Identifier: Apache-2.0
"""Processes of weir on hosts, whose lines are read while they run."""
import os
import subprocess
import threading

HANG = 120  # seconds: an end for what would hang


class Process:
    def __init__(self, test, host, words, **more):
        """Ended with |test|."""
        self.lines, self.over = [], False
        self.seen = threading.Condition()
        self.p = host.start(*map(str, words), text=True,
                            stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, **more)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        test.addCleanup(self.end)

    def read(self):
        for line in self.p.stderr:
            with self.seen:
                self.lines.append(line)
                self.seen.notify_all()
        with self.seen:
            self.over = True
            self.seen.notify_all()

    def end(self):
        """Killed, if it runs."""
        self.p.kill()
        self.p.wait()
        self.reader.join(HANG)
        if not self.p.stderr.closed:
            self.p.stderr.close()

    def text(self):
        return "".join(self.lines)

    def wait_for(self, words):
        """Until a line has |words|."""
        def found():
            return self.over or any(words in line for line in self.lines)
        with self.seen:
            if not self.seen.wait_for(found, HANG) or not any(
                    words in line for line in self.lines):
                raise AssertionError(f"no '{words}': {self.text()}")

    def ended(self, code):
        """What it said, once it has ended with |code|."""
        status = self.p.wait(HANG)
        self.reader.join(HANG)
        if status != code:
            raise AssertionError(f"{status}, not {code}: {self.text()}")
        return self.text()

    def cpu_s(self):
        """Seconds that it has computed."""
        with open(f"/proc/{self.p.pid}/stat", encoding="ascii") as f:
            words = f.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def files(self):
        """How many it has open."""
        return len(os.listdir(f"/proc/{self.p.pid}/fd"))

    def memory(self):
        """Bytes that are in memory."""
        with open(f"/proc/{self.p.pid}/status", encoding="ascii") as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        raise AssertionError("the process has ended")
