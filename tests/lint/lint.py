#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of the house that a compiler does not check.

  lint.py CHECK...     sources: rooms doors declared docs length spdx forbidden
                       format wings pages params names tables
  lint.py --objects LIBWEIR_CORE.a     writable globals
  lint.py --links TARGET...            the ladder by symbols (links.py)
  lint.py --unused TARGET...           symbols that nothing needs (links.py)
  lint.py --symbols LIBWEIR.so runtime/weir.map     exported names

Each finding is one line, file:line: text [check]. Exit status 1 with findings.
"""
import os
import re
import shutil
import subprocess
import sys

from layout import check_pages, check_params, check_wings
from links import check_links, check_unused
from names import check_names
from tables import check_tables
from tree import (ROOMS, ROOT, bare, findings, is_generated, is_library, read,
                  report, room_of, tracked)

# cli/ stands on top and may see these only: the public API, the tools, and of
# base the parts that read and write text.
CLI_MAY = ("runtime/weir.h", "runtime/tools/", "runtime/base/json/json.h",
           "runtime/base/quantity.h")
# Third-party headers and the one file that may include each. Tests may include
# any, but for those whose places say where in tests/.
DOORS = {
    r"yaml\.h": {"runtime/base/yaml/yaml_build.h"},
    r"zlib\.h": 1,
    r"png\.h": 1,
    r"(oneapi/)?dnnl[./].*": {"kernels/cpu/onednn/onednn_api.h"},
    r"omp\.h": 1,
    r"cuda.*|cublas.*|driver_types\.h|cooperative_groups.*|mma\.h|"
    r"vector_types\.h|math_constants\.h": {"runtime/device/cuda/",
                                           "tests/bench/gpu/",
                                           "tests/cuda/"},
    r"grpc/.*": {"runtime/net/grpc/"},
    r"openssl/.*": {"runtime/net/grpc/tls/"},
    r"protobuf-c/.*|.*\.pb-c\.h": 1,
}
FORBIDDEN = re.compile(
    r"(?<![\w>.])(abort|exit|_exit|quick_exit|printf|puts|putchar|perror|"
    r"getenv|secure_getenv|time|gettimeofday|clock_gettime|rand|random|srand|"
    r"sleep|usleep|nanosleep|fopen|strcpy|strcat|sprintf|atoi|alloca|"
    r"setlocale|signal)\s*\(")
# The files that are the door to the system.
FORBIDDEN_DOORS = {
    "runtime/base/env_system.c": {"clock_gettime", "fopen"},
    "runtime/exec/pool.c": {"nanosleep", "clock_gettime"},
    "runtime/net/local.c": {"clock_gettime"},  # a condition's deadline
}
FILE_LINES, FUNCTION_REPORT, FUNCTION_LINES = 500, 60, 100

def check_rooms():
    for path in tracked(".c", ".h", ".cu"):
        mine = room_of(path)
        if mine is None:
            continue
        for n, line in enumerate(read(path).splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not m:
                continue
            inc = m.group(1)
            theirs = room_of(inc)
            if inc == "weir.h" and mine == "cli/":
                continue
            if theirs is None:
                if not os.path.exists(os.path.join(ROOT, inc)) and "/" not in inc:
                    continue  # generated, or beside its includer
                report("rooms", path, n, f"{inc} is in no room")
            elif mine == "cli/" and theirs != "cli/" and \
                    not inc.startswith(CLI_MAY):
                report("rooms", path, n, f"cli/ may not include {inc}")
            elif mine != theirs and ROOMS[theirs] >= ROOMS[mine] and \
                    mine != "cli/":
                report("rooms", path, n,
                       f"{mine} ({ROOMS[mine]}) includes {inc} "
                       f"({theirs} is {ROOMS[theirs]})")


def check_doors():
    seen = {}
    for path in tracked(".c", ".h", ".cu", ".cc"):
        outside = path.startswith(("tests/", "docs/"))
        for n, line in enumerate(read(path).splitlines(), 1):
            m = re.match(r"\s*#\s*include\s+[<\"]([^>\"]+)[>\"]", line)
            if not m:
                continue
            for door, places in DOORS.items():
                if not re.fullmatch(door, m.group(1)):
                    continue
                if outside and not (places != 1 and
                                    any(p.startswith("tests/") for p in places)):
                    continue
                if places == 1:
                    seen.setdefault(door, {})[path] = n
                elif not any(path == p or (p[-1] == "/" and path.startswith(p))
                             for p in places):
                    report("doors", path, n, f"{m.group(1)} has another door: "
                           + ", ".join(sorted(places)))
    for door, files in seen.items():
        folders = sorted(files)
        for path in folders[1:]:
            report("doors", path, files[path],
                   f"{door} is included by {folders[0]} too: one door each")


FUNCTION = re.compile(
    r"^(?!typedef|return|else|#|static\s+inline|extern)"
    r"(?:[A-Za-z_][\w ]*[ *]+|WEIR_\w+ )+(\w+)\s*\([^;{}]*\)[^;{}]*;", re.M)


def commented(lines, n):
    """Whether a comment stands above line n: in its paragraph, or as the whole
    of the paragraph before (a section's comment)."""
    while n >= 0 and lines[n].strip():
        if "*/" in lines[n] or "/*" in lines[n]:
            return True
        n -= 1
    return n > 0 and lines[n - 1].endswith("*/") and "SPDX" not in lines[n - 1]


def check_docs():
    """Every function in a header has a comment: above it, on its line, or as
    its section's. _init and _release, which say all by their names, need
    none."""
    for path in tracked(".h"):
        if room_of(path) is None:
            continue
        text = read(path)
        code = bare(text)
        lines = text.splitlines()
        for m in FUNCTION.finditer(code):
            first = code.count("\n", 0, m.start()) + 1
            last = code.count("\n", 0, m.end()) + 1
            own = "\n".join(lines[first - 1:last])
            if "/*" not in own and not commented(lines, first - 2) and \
                    not m.group(1).endswith(("_init", "_release")):
                report("docs", path, first, f"{m.group(1)} has no comment")


# Headers that are one door to several files, and why.
DECLARED_ELSEWHERE = {
    "runtime/weir/": "public: a topic each, whatever files the handles need",
    "runtime/tools/": "what the command calls, in one place",
    "runtime/api/weir_internal.h": "the handles' structs and a few helpers",
    "runtime/dist/link/link": "one machine in several files, and its door",
    "runtime/dist/task/task": "one machine in several files, and its door",
    "runtime/dist/driver/driver": "one machine in several files, and its door",
    "runtime/dist/ps/server": "one machine in several files, and its door",
    "runtime/dist/ps/worker": "one machine in several files, and its door",
    "runtime/dist/ps/coordinator": "one machine in several files, and its door",
}
DEFINITION = re.compile(
    r"^(?!typedef|static|return|else|#)[A-Za-z_][^;{}#=]*?\b(\w+)\s*"
    r"\([^;{}]*\)\s*\{", re.M)


def check_declared():
    """A function is declared in the header of the file that defines it: x.c
    has x.h and, for its own family, x_internal.h. Generated functions are
    defined in no file here."""
    defined = {}
    for path in tracked(".c"):
        if is_library(path):
            for m in DEFINITION.finditer(bare(read(path))):
                defined.setdefault(m.group(1), path)
    for path in tracked(".h"):
        if not is_library(path) or path.startswith(tuple(DECLARED_ELSEWHERE)):
            continue
        stem = path[:-2]
        owners = (stem + ".c", stem.removesuffix("_internal") + ".c")
        code = bare(read(path))
        for m in FUNCTION.finditer(code):
            where = defined.get(m.group(1))
            if where is not None and where not in owners:
                report("declared", path, code.count("\n", 0, m.start()) + 1,
                       f"{m.group(1)} is defined in {where}, and must be "
                       f"declared in {where[:-2]}.h")


def check_length():
    for path in tracked(".c", ".h", ".cu", ".cc"):
        if path.startswith("tests/") and not path.startswith("tests/lint"):
            limit = FILE_LINES * 2
        else:
            limit = FILE_LINES
        text = bare(read(path))
        count = text.count("\n")
        if count > limit:
            report("length", path, 1, f"{count} lines, at most {limit}")
        if not path.endswith(".h"):
            check_functions(path, text)


def check_functions(path, text):
    start = None
    lines = text.splitlines()
    for n, line in enumerate(lines, 1):
        if line.endswith("{") and re.match(r"^[A-Za-z_]", line) or \
                line == "{" or re.match(r"^ {4,}[\w*].*\) \{$", line) and \
                start is None:
            if "=" not in line and not line.startswith(
                    ("struct", "enum", "union", "typedef", "extern")):
                start = n
        elif line.startswith("}") and start is not None:
            size = n - start + 1
            if size > FUNCTION_LINES:
                report("length", path, start, f"function of {size} lines, at "
                       f"most {FUNCTION_LINES}")
            elif size > FUNCTION_REPORT:
                print(f"note: {path}:{start}: function of {size} lines")
            start = None


def check_spdx():
    for path in tracked(".c", ".h", ".cu", ".cc", ".py", ".sh", ".build", ".weir.yaml",
                        ".map", ".def"):
        if re.match(r"tests/(.*/)?(corpus|bad|fuzz)/", path) and \
                not path.endswith((".c", ".h", ".cu", ".cc", ".py", ".build")):
            continue  # inputs stay as they are
        head = "\n".join(read(path).splitlines()[:4])
        if "SPDX-License-Identifier: Apache-2.0" not in head:
            report("spdx", path, 1, "no SPDX line")


def check_forbidden():
    for path in tracked(".c", ".h"):
        if not is_library(path):
            continue
        allowed = FORBIDDEN_DOORS.get(path, set())
        for n, line in enumerate(bare(read(path)).splitlines(), 1):
            for m in FORBIDDEN.finditer(line):
                declared = re.search(r"\(\*\s*" + m.group(1), line)
                if m.group(1) not in allowed and not declared:
                    report("forbidden", path, n,
                           f"{m.group(1)}() in the library")


def check_format():
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    version = tool and subprocess.run(
        [tool, "--version"], capture_output=True, text=True).stdout
    if not version or "version 14." not in version:
        print("note: clang-format 14 is not here, layout was not checked")
        return
    files = tracked(".c", ".h", ".cu", ".cc")
    out = subprocess.run([tool, "--dry-run", "-Werror", "--ferror-limit=1",
                          "--style=file"] + files,
                         cwd=ROOT, capture_output=True, text=True)
    for line in out.stderr.splitlines():
        m = re.match(r"([^:\s]+):(\d+):\d+: error: (.*)", line)
        if m:
            report("format", m.group(1), m.group(2), "not as clang-format 14 "
                   "lays it out")


def check_objects(archive):
    """Nothing that can be written may outlive a call: .data and .bss of the
    library hold no symbol (those of one thread, and constants that only need
    relocation, excepted)."""
    out = subprocess.run(["objdump", "-t", archive], capture_output=True,
                         text=True, check=True).stdout
    member = archive
    for line in out.splitlines():
        m = re.match(r"(\S+):\s+file format", line)
        if m:
            member = os.path.basename(m.group(1))
        m = re.match(r"[0-9a-f]+ .{6}[O ] (\S+)\s+([0-9a-f]+) (?:\.hidden )?"
                     r"(\S+)$", line)
        if m and int(m.group(2), 16) and writable(m.group(1)) and \
                not is_generated(m.group(3)):
            report("objects", member, 0, f"{m.group(3)} is a writable global")


def writable(section):
    return section == "*COM*" or (
        re.match(r"\.(data|bss)", section) and
        not section.startswith(".data.rel.ro"))


def check_symbols(library, version_map):
    listed = set()
    hidden = False
    for line in read_path(version_map).splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("local:"):
            hidden = True
        elif line.startswith("}"):
            hidden = False
        elif not hidden:
            listed |= {n for n in re.findall(r"(weir_\w+);", line)}
    out = subprocess.run(["nm", "-D", "--defined-only", library],
                         capture_output=True, text=True, check=True).stdout
    seen = set()
    for line in out.splitlines():
        name = line.split()[-1]
        if line.split()[-2] != "A":
            seen.add(name.split("@")[0])
    for name in sorted(listed - seen):
        report("symbols", version_map, 0, f"{name} is listed, not exported")
    for name in sorted(seen - listed):
        report("symbols", library, 0, f"{name} is exported, not listed")


def read_path(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


CHECKS = {"rooms": check_rooms, "doors": check_doors,
          "declared": check_declared, "docs": check_docs,
          "length": check_length, "spdx": check_spdx,
          "forbidden": check_forbidden, "format": check_format,
          "wings": check_wings, "pages": check_pages, "params": check_params,
          "names": check_names, "tables": check_tables}


def main(args):
    if args[:1] == ["--objects"]:
        check_objects(args[1])
    elif args[:1] == ["--symbols"]:
        check_symbols(args[1], args[2])
    elif args[:1] == ["--links"]:
        check_links(args[1:])
    elif args[:1] == ["--unused"]:
        check_unused(args[1:])
    else:
        for name in args or CHECKS:
            CHECKS[name]()
    for line in findings:
        print(line)
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
