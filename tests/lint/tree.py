# SPDX-License-Identifier: Apache-2.0
"""The checked tree: its files, its rooms, and the findings."""
import os
import re
import subprocess

ROOT = os.environ.get("WEIR_SOURCE_ROOT") or os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", ".."))

# The ladder (docs/decisions.md): a file includes its own room and rooms of
# lower number. The longest matching prefix names the room.
ROOMS = {
    "runtime/base/": 0, "runtime/tensor/": 1, "runtime/io/": 2,
    "runtime/device/": 2, "runtime/net/": 2, "ops/": 2, "runtime/graph/": 3,
    "kernels/": 3, "placement/": 4, "runtime/exec/": 5, "runtime/dist/": 6,
    "runtime/train/": 7, "runtime/": 8, "runtime/tools/": 9, "cli/": 10,
}

findings = []


def report(check, path, line, text):
    findings.append(f"{path}:{line}: {text} [{check}]")


def tracked(*suffixes):
    """Files of the tree: from git, or from the folders in a tarball."""
    if not tracked_cache:
        tracked_cache.extend(list_files())
    return [f for f in tracked_cache if f.endswith(suffixes)]


tracked_cache = []


def list_files():
    try:
        out = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
            check=True, capture_output=True, text=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        out = []
        for top, folders, files in os.walk(ROOT):
            folders[:] = [f for f in folders
                          if not f.startswith((".", "build"))]
            out += [os.path.relpath(os.path.join(top, f), ROOT) for f in files]
    return sorted(f for f in out if os.path.isfile(os.path.join(ROOT, f)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8",
              errors="replace") as f:
        return f.read()


TOKENS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'
                    r"'(?:\\.|[^'\\\n])*'", re.S)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def bare(text):
    """The text with comments and literals blanked, line breaks kept."""
    def without(m):
        s = m.group(0)
        if s[0] in "\"'":
            return s[0] + " " * (len(s) - 2) + s[0] if len(s) > 1 else s
        return blank(s)
    return TOKENS.sub(without, text)


def comments(text):
    """The text with all but comments blanked, line breaks kept."""
    out, at = [], 0
    for m in TOKENS.finditer(text):
        out.append(blank(text[at:m.start()]))
        s = m.group(0)
        out.append(blank(s) if s[0] in "\"'" else s)
        at = m.end()
    return "".join(out) + blank(text[at:])


def room_of(path):
    return max((r for r in ROOMS if path.startswith(r)), key=len, default=None)


def is_library(path):
    return room_of(path) is not None and not path.startswith("cli/")


def is_generated(name):
    """Symbols that compilers and sanitizers make for themselves."""
    return name.startswith(("__odr_asan", "__sancov", "_.L", ".L", "__gcov",
                            "DW.ref", "__func__", "__PRETTY_FUNCTION__"))
