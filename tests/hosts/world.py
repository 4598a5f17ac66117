# SPDX-License-Identifier: Apache-2.0
"""Hosts on one machine: network namespaces around a bridge.

  enter(argv)               runs the script once more where it may make hosts,
                            or ends it with 77 and the reason
  world = World(4)          hosts at 10.77.0.1 ...
  host = world.hosts[0]
  host.start("weir", ...)   a process on that host
  host.cut()                its cable is out: both sides keep their connections
  host.deaf(), host.mute()  frames to it, or from it, are lost, and nobody is
                            told
  host.lose(other)          the same for frames to one other host
  host.rate("1gbit")        how fast its cable is, both ways
  host.received()           bytes that have come by it
  host.heal()               all of that is over

A namespace lives as long as a process that has it, and all processes of a test
are in one process namespace, whose end is theirs. So a test that is killed
leaves no namespace, link or process behind, and no names can meet.
"""
import ctypes
import json
import os
import shutil
import subprocess
import sys

NEWNET = 0x40000000  # CLONE_NEWNET of <linux/sched.h>
INSIDE = "inside"
LIBC = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    if getattr(LIBC, name)(*args) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def skip(why):
    print(f"no hosts: {why}")
    sys.exit(77)


def enter(argv):
    """Goes on in namespaces of its own, as |argv| with a last word more."""
    if argv[-1] == INSIDE:
        argv.pop()
        return
    for tool in ("unshare", "ip", "tc"):
        if shutil.which(tool) is None:
            skip(f"there is no command {tool}")
    base = ["unshare", "--net", "--mount", "--pid", "--fork",
            "--kill-child=KILL", "--mount-proc"]
    said = ""
    for more in ([], ["--map-root-user"]):  # root, or whoever may become it
        probe = subprocess.run(
            [*base, *more, "sh", "-c", "ip link add name b0 type bridge && "
             "ip link add name v0 type veth peer name v1"], capture_output=True,
            text=True)
        if probe.returncode == 0:
            os.execvp("unshare", [*base, *more, sys.executable, *argv, INSIDE])
        said = said or probe.stderr.strip().replace("\n", "; ")
    skip(f"namespaces, bridges or veth are not permitted: {said}")


def run(*words):
    """A command that must work."""
    p = subprocess.run(words, capture_output=True, text=True)
    if p.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {p.stderr}")
    return p.stdout


class Host:
    def __init__(self, world, number):
        self.world, self.number = world, number
        self.address = f"10.77.0.{number + 1}"
        self.port = f"port{number}"  # of the bridge
        call("unshare", NEWNET)
        self.net = os.open("/proc/self/ns/net", os.O_RDONLY)
        try:
            run("ip", "link", "set", "lo", "up")
        finally:
            self.leave()
        run("ip", "link", "add", "name", self.port, "type", "veth", "peer",
            "name", "cable" + str(number))
        subprocess.run(["ip", "link", "set", "cable" + str(number), "netns",
                        f"/proc/self/fd/{self.net}"], check=True,
                       pass_fds=[self.net])
        run("ip", "link", "set", self.port, "master", "bridge", "up")
        self.run("ip", "link", "set", "cable" + str(number), "name", "eth0")
        self.run("ip", "address", "add", self.address + "/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")

    def leave(self):
        call("setns", self.world.net, NEWNET)

    def start(self, *words, **more):
        """Popen on this host."""
        call("setns", self.net, NEWNET)
        try:
            return subprocess.Popen(words, **more)
        finally:
            self.leave()

    def run(self, *words):
        call("setns", self.net, NEWNET)
        try:
            return run(*words)
        finally:
            self.leave()

    def enter(self, function):
        """What |function| returns when it is called on this host; its sockets
        are the host's for ever."""
        call("setns", self.net, NEWNET)
        try:
            return function()
        finally:
            self.leave()

    def cut(self):
        run("ip", "link", "set", self.port, "down")

    def deaf(self):
        run("tc", "qdisc", "replace", "dev", self.port, "root", "blackhole")

    def mute(self):
        self.run("tc", "qdisc", "replace", "dev", "eth0", "root", "blackhole")

    def lose(self, other):
        """Frames to |other| go to a station that nobody is."""
        self.run("ip", "neighbour", "replace", other.address, "lladdr",
                 "02:00:00:00:00:01", "nud", "permanent", "dev", "eth0")

    def received(self):
        said = json.loads(self.run("ip", "-s", "-j", "link", "show", "eth0"))
        return said[0]["stats64"]["rx"]["bytes"]

    def rate(self, rate):
        words = ("root", "tbf", "rate", rate, "burst", "256k", "latency",
                 "50ms")
        run("tc", "qdisc", "replace", "dev", self.port, *words)
        self.run("tc", "qdisc", "replace", "dev", "eth0", *words)

    def heal(self):
        """As it was at first."""
        run("ip", "link", "set", self.port, "up")
        for how, device in ((run, self.port), (self.run, "eth0")):
            try:
                how("tc", "qdisc", "delete", "dev", device, "root")
            except RuntimeError:
                pass  # there was none
            how("ip", "neighbour", "flush", "all")
            how("ip", "neighbour", "flush", "nud", "permanent")


class World:
    def __init__(self, count):
        self.net = os.open("/proc/self/ns/net", os.O_RDONLY)
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "name", "bridge", "type", "bridge")
        run("ip", "link", "set", "bridge", "up")
        self.hosts = [Host(self, i) for i in range(count)]

    def heal(self):
        for h in self.hosts:
            h.heal()
