# SPDX-License-Identifier: Apache-2.0
"""How the house is laid out: folders and their pages, parameters."""
import os
import re

from tree import ROOMS, bare, read, report, room_of, tracked

WING_FILES, PARAMETERS = 30, 7
# Functions with more parameters than that, and why.
PARAMETERS_MAY = {}


def wings():
    """Each folder of the rooms that holds .c or .h files: its files."""
    folders = {}
    for path in tracked(".c", ".h"):
        if room_of(path) is not None:
            folders.setdefault(os.path.dirname(path), []).append(path)
    return folders


def check_wings():
    """No folder holds more than WING_FILES sources."""
    for folder, files in sorted(wings().items()):
        if len(files) > WING_FILES:
            report("wings", folder, 1,
                   f"{len(files)} .c and .h files, at most {WING_FILES}")


def check_pages():
    """Each folder with sources, and each room, has a README.md with a heading
    and a paragraph."""
    pages = set(tracked("README.md"))
    rooms = {r.rstrip("/") for r in ROOMS if r != "runtime/dist/"}
    for folder in sorted(set(wings()) | rooms):
        page = folder + "/README.md"
        if page not in pages:
            if any(f.startswith(folder + "/") for f in tracked(".c", ".h")):
                report("pages", folder, 1, "no README.md")
            continue
        text = re.sub(r"^```.*?^```", "", read(page), flags=re.S | re.M)
        blocks = [b.strip() for b in re.split(r"\n\s*\n|\n(?=#)|(?<=\n)(?=\|)",
                                              text)]
        if not any(re.match(r"#+ \S", b) for b in blocks):
            report("pages", page, 1, "no heading")
        if not any(re.match(r"[^#|\s]", re.sub(r"^#.*\n?", "", b))
                   for b in blocks):
            report("pages", page, 1, "no paragraph")


def parameters(code):
    """(name, line, count) of each function that |code| defines or declares at
    its top level. |code| is bare of comments and literals."""
    code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: re.sub(
        r"[^\n]", " ", m.group(0)), code, flags=re.M)
    at = 0
    while at < len(code):
        c = code[at]
        if c == "{" and not re.search(r'extern\s*"\s*"\s*$',
                                      code[max(0, at - 30):at]):
            at = closing(code, at)
        elif c == "(":
            end = closing(code, at)
            name = re.search(r"(\w+)\s*$", code[:at][-200:])
            after = code[end:end + 200].lstrip()
            if name and re.match(r"[{;]|WEIR_|__attribute__", after) and \
                    name.group(1) not in ("__attribute__", "_Static_assert"):
                yield (name.group(1), code.count("\n", 0, at) + 1,
                       commas(code[at + 1:end - 1]))
            at = end
        else:
            at += 1


def closing(code, at):
    """The place after the bracket that closes the one at |at|."""
    depth = 0
    for i in range(at, len(code)):
        if code[i] in "({[":
            depth += 1
        elif code[i] in ")}]":
            depth -= 1
            if depth == 0:
                return i + 1
    return len(code)


def commas(arguments):
    """The number of parameters in a list of them."""
    depth, count = 0, 1 if arguments.strip() not in ("", "void") else 0
    for c in arguments:
        depth += (c in "({[") - (c in ")}]")
        count += c == "," and depth == 0
    return count


def check_params():
    """No function, static ones too, has more than PARAMETERS parameters."""
    for path in tracked(".c", ".h"):
        if room_of(path) is None:
            continue
        for name, line, count in parameters(bare(read(path))):
            if count > PARAMETERS and name not in PARAMETERS_MAY:
                report("params", path, line, f"{name} has {count} parameters, "
                       f"at most {PARAMETERS}")
