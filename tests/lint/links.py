# SPDX-License-Identifier: Apache-2.0
"""Needs of objects between each other: the ladder, and functions nobody needs.

Both checks read `nm` of the objects behind build targets. A target is given as
its file; its objects lie in FILE.p beside it, as meson puts them. An object's
name is its source's path with / as _.
"""
import glob
import os
import re
import subprocess

from tree import (ROOMS, ROOT, bare, is_generated, read, report, room_of,
                  tracked)

# The needs that cli/ may have: the API and code on top of it; of base the JSON
# writer and quantities.
CLI_NEEDS = ("cli/", "runtime/tools/", "runtime/")
CLI_NEEDS_SOURCES = ("runtime/base/json/", "runtime/base/quantity.c")

# Code that nothing needs yet, and the work that will: files, folders or symbols.
TASKS = "tasks over a network"
CUDA = "the CUDA device"
UNUSED_MAY = {
    "runtime/net/": TASKS,
    "runtime/dist/": TASKS,
    "cli/spawn/": TASKS,
    "runtime/device/": CUDA,
    "runtime/exec/channel/channel_null.c": TASKS,
}


class Object:
    """An object file: its source, its definitions and its needs."""

    def __init__(self, path, source):
        self.path, self.source = path, source
        self.defines, self.needs = {}, set()  # name: kind (T, R, D, B)


def source_of(path, sources):
    """The tracked source of an object; None for one that the tree lost. A target's
    sources are named from its meson file's folder."""
    name = os.path.basename(path)[:-len(".o")]
    folders = os.path.dirname(os.path.dirname(path)).split("/")
    made = re.match(r"meson-generated_(?:\.\._)?(.*)", name)
    if made:
        full = made.group(1).replace("_", "/")
        return full if room_of(full) else folders[-1] + "/" + full
    for n in range(len(folders) + 1):
        full = "_".join(folders[len(folders) - n:] + [name])
        if full in sources:
            return sources[full]
    return None


def load(targets):
    """The objects of build targets."""
    sources = {f.replace("/", "_"): f for f in tracked(".c")}
    paths = []
    for target in targets:
        found = sorted(glob.glob(os.path.join(target + ".p", "**", "*.o"),
                                 recursive=True))
        if not found:
            report("links", target, 0, "has no objects")
        paths += found
    objects = {p: Object(p, source_of(p, sources)) for p in paths}
    out = subprocess.run(["nm", "-A", *paths], capture_output=True, text=True,
                         check=True).stdout
    for line in out.splitlines():
        path, rest = line.split(":", 1)
        *_, kind, name = rest.split()
        if is_generated(name):
            continue
        if kind == "U":
            objects[path].needs.add(name)
        elif kind in "TRDBCVW":
            objects[path].defines[name] = kind
    for o in objects.values():
        if o.source is None:
            report("links", o.path, 0, "an object of no source of the tree")
    return [o for o in objects.values()
            if o.source is not None and room_of(o.source) is not None]


def exported():
    """The names that weir.map lists: hosts call them."""
    names = set()
    for path in tracked(".map"):
        names |= set(re.findall(r"(\w+);", read(path)))
    return names


def check_links(targets):
    """An object needs symbols of its own room and of rooms below alone; cli of
    the API and runtime/tools alone."""
    objects, public = load(targets), exported()
    home = {}
    for o in objects:
        for name in o.defines:
            home.setdefault(name, o.source)
    for o in sorted(objects, key=lambda o: o.source):
        mine = room_of(o.source)
        for name in sorted(o.needs - o.defines.keys()):
            source = home.get(name)
            if source is None or room_of(source) == mine:
                continue
            theirs = room_of(source)
            if mine == "cli/":
                if theirs not in CLI_NEEDS and name not in public and \
                        not source.startswith(CLI_NEEDS_SOURCES):
                    report("links", o.source, 0,
                           f"{name} ({source}): cli/ may need the API and "
                           "runtime/tools/ alone")
            elif ROOMS[theirs] >= ROOMS[mine]:
                report("links", o.source, 0,
                       f"{mine} ({ROOMS[mine]}) needs {name} of {source} "
                       f"({theirs} is {ROOMS[theirs]})")


def words_of_tests():
    words = set()
    for path in tracked(".c", ".h"):
        if path.startswith("tests/"):
            words |= set(re.findall(r"\w+", bare(read(path))))
    return words


def uses_itself(source, name):
    """Whether a source names |name| more often than its definition does. A
    generated source is taken to."""
    if not os.path.exists(os.path.join(ROOT, source)):
        return True
    return len(re.findall(rf"\b{name}\b", bare(read(source)))) > 1


def check_unused(targets):
    """A symbol with external linkage is needed by another object of the
    product, or exported, or in UNUSED_MAY. A function that its own file alone needs is
    static, unless a test looks at it."""
    objects, tests = load(targets), words_of_tests()
    needed = {}
    for o in objects:
        for name in o.needs:
            needed.setdefault(name, set()).add(o.source)
    keep = exported() | {"main"} | UNUSED_MAY.keys()
    for o in sorted(objects, key=lambda o: o.source):
        if o.source.startswith(tuple(UNUSED_MAY)):
            continue
        for name in sorted(o.defines.keys() - keep):
            if needed.get(name, set()) - {o.source}:
                continue
            if not uses_itself(o.source, name):
                who = "tests alone need" if name in tests else "nothing needs"
                report("unused", o.source, 0, f"{who} {name}")
            elif name not in tests:
                report("unused", o.source, 0,
                       f"{name} could be static: its own file alone needs it")
