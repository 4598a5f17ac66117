# SPDX-License-Identifier: Apache-2.0
"""A task that strangers are near, and a driver that is none."""
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
import wire_fields  # noqa: E402

ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
SANITIZED = "CLI_SANITIZED" in os.environ
HANG = 300  # seconds: an end for what would hang
GRAPH = """weir: 1
inputs: {x: "f32[8000] = ones([8000])"}
nodes:
  s0: {op: state, attrs: {shape: [4]}}
  one: {op: ones, attrs: {shape: [4]}}
  s: {op: assign_add, in: [s0, one]}
  a: {op: mul, in: [x, 2]}
outputs: {a: a, s: s}
"""


def crc32c(data):
    """Castagnoli's, bit by bit (reflected 0x82F63B78)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def control(body):
    """A control message: its checksum, then |body|."""
    return b"\x0d" + crc32c(body).to_bytes(4, "little") + body


def is_reply(message):
    return any(n == 4 for n, _ in wire_fields.fields(message))


class Task:
    """A process that serves at |listen|, in |folder|, with |files| at most."""

    def __init__(self, weir, folder, listen, files=None, beat="1s"):
        self.weir, self.folder = weir, pathlib.Path(folder)
        self.p = subprocess.Popen(
            [weir, "task", "--job", "worker", "--index", "0", "--cluster",
             "worker=1", "--listen", listen, "--threads", "1",
             "--heartbeat", beat],
            cwd=folder, env=ENV, text=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, preexec_fn=None if files is None else
            lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
        first = self.p.stderr.readline()
        m = re.search(r"listening at (\S+)", first)
        if not m:
            raise AssertionError(first + self.p.stderr.read())
        self.address = m.group(1)
        self.lines = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        (self.folder / "g.weir.yaml").write_text(GRAPH)

    def read(self):
        for line in self.p.stderr:
            self.lines.append(line)

    @property
    def port(self):
        host, port = self.address.rsplit(":", 1)
        return host, int(port)

    def driver(self, *words):
        path = self.folder / "cluster.yaml"
        path.write_text("worker: %s\n" % json.dumps([self.address]))
        return subprocess.Popen(
            [self.weir, *words, "g.weir.yaml", "-t", "1", "--cluster",
             str(path)], cwd=self.folder, env=ENV, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def drive(self):
        """A driver's run: what it says when it fails, or None."""
        p = self.driver("run", "-q")
        _, err = p.communicate(timeout=HANG)
        return None if p.returncode == 0 else err

    def status(self, name):
        text = pathlib.Path(f"/proc/{self.p.pid}/status").read_text()
        return int(re.search(name + r":\s+(\d+)", text).group(1))

    def mib(self):
        return self.status("VmRSS") / 1024

    def files(self):
        return len(os.listdir(f"/proc/{self.p.pid}/fd"))

    def until(self, condition):
        """Waits; a condition that never holds hangs until the end of all."""
        end = time.monotonic() + HANG
        while not condition():
            if self.p.poll() is not None or time.monotonic() > end:
                raise AssertionError("".join(self.lines))
            time.sleep(0.01)

    def stop(self):
        """Ends it as a user does; its exit code."""
        self.p.terminate()
        code = self.p.wait(HANG)
        self.reader.join(HANG)
        self.p.stderr.close()
        return code
