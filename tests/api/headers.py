# SPDX-License-Identifier: Apache-2.0
"""The public headers as text: which they are, their structs and prototypes.

  headers.py grow SOURCE_ROOT OUT STAMP a copy in which every public struct has
                                        more fields at its end
  headers.py freeze SOURCE_ROOT         all of weir.h as one file, on stdout
  headers.py declared SOURCE_ROOT HEADER...  functions that installed headers
                                        declare and the library does not export,
                                        and the other way round
  headers.py used SOURCE_ROOT           exports without a use in tests/api or
                                        docs/embed; exit status 1 with any
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "(runtime/[\w/]+\.h)"\n', re.M)


def read(root, path):
    return (root / path).read_text(encoding="utf-8")


def headers(root, path="runtime/weir.h", seen=None):
    """The header and its includes, the included first."""
    seen = [] if seen is None else seen
    for inc in INCLUDE.findall(read(root, path)):
        if inc not in seen:
            headers(root, inc, seen)
    if path not in seen:
        seen.append(path)
    return seen


def without_comments(text):
    return re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                  text, flags=re.S)


def prototypes(root):
    """(result type, name, [(type, parameter)...]) of each exported function."""
    out = []
    for path in headers(root):
        text = without_comments(read(root, path))
        for m in re.finditer(r"^WEIR_API (?:WEIR_MUST_USE )?([^;{]*?)(\w+)"
                             r"\(((?:[^()]|\([^()]*\))*)\);", text, re.M):
            out.append((" ".join(m.group(1).split()), m.group(2),
                        [parameter(p) for p in split(m.group(3))]))
    return out


def split(text):
    """The parameters of a list, at commas outside parentheses."""
    parts, depth = [""], 0
    for c in " ".join(text.split()):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip() not in ("", "void")]


def parameter(text):
    pointer = re.match(r"(.*)\(\*(\w+)\)(\(.*\))$", text)
    if pointer:  # of a function
        return pointer.group(1) + "(*)" + pointer.group(3), pointer.group(2)
    m = re.match(r"(.*?)(\w+)$", text)
    return m.group(1).strip(), m.group(2)


def structs(text):
    """Public structs that can grow: those that begin with struct_size."""
    return re.findall(r"typedef struct \w+ \{\s*uint32_t struct_size;"
                      r"[^{}]*\} (\w+);", without_comments(text))


def grow(root, out, stamp):
    count = 0
    for path in headers(root) + ["runtime/dlpack.h"]:
        text = read(root, path)
        for name in structs(text):
            text = text.replace(f"}} {name};",
                                f"  uint64_t grown[3];\n}} {name};")
            count += 1
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
    stamp.write_text(f"{count} structs\n")


def freeze(root):
    parts = []
    for path in headers(root):
        text = INCLUDE.sub("", read(root, path))
        text = text.replace("/* SPDX-License-Identifier: Apache-2.0 */\n", "")
        # The ids' numbers are the library's own.
        text = re.sub(r"/\* Error ids are frozen.*?\} weir_error_id;",
                      "typedef int weir_error_id;", text, flags=re.S)
        text = re.sub(r"[ \t]*/\*.*?\*/", "", text, flags=re.S)
        text = re.sub(r"\n{2,}", "\n", re.sub(r"[ \t]+\n", "\n", text))
        parts.append(text.strip())
    sys.stdout.write("/* SPDX-License-Identifier: Apache-2.0 */\n"
                     "/* weir.h with all that it includes, without comments, "
                     "as it was in 0.1; made by headers.py. */\n"
                     + "\n\n".join(parts) + "\n")


def used(root):
    text = "".join(
        without_comments(p.read_text(encoding="utf-8"))
        for folder in ("tests/api", "docs/embed")
        for p in sorted((root / folder).glob("*.c")))
    names = re.findall(r"\b(weir_\w+);", read(root, "runtime/weir.map"))
    missing = [n for n in names if not re.search(rf"\b{n}\b", text)]
    for name in missing:
        print(f"{name} has no test in tests/api and no use in docs/embed")
    print(f"{len(names)} exports, {len(missing)} without a use")
    return 1 if missing or not names else 0


def declared(root, installed):
    """Installed headers declare the exports, all of them and no others."""
    names, wrong = set(), []
    for path in installed:
        if path not in headers(root) + ["runtime/dlpack.h"]:
            wrong.append(f"{path} is installed, and weir.h does not include it")
        text = without_comments(read(root, path))
        for inc in INCLUDE.findall(text):
            if inc not in installed:
                wrong.append(f"{path} includes {inc}, which is not installed")
        text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", "", text, flags=re.M)
        text = re.sub(r"static inline [^;{]*\{.*?^\}", "", text,
                      flags=re.S | re.M)
        # A declaration begins a line; members and casts do not.
        for m in re.finditer(r"^(?:\w[\w \t\n*]*?[ *\n])(\w+)\((?!\*)[^;{]*;",
                             text, re.M):
            names.add(m.group(1))
    exports = set(re.findall(r"\b(weir_\w+);", read(root, "runtime/weir.map")))
    wrong += [f"{n} is declared in an installed header and not exported"
              for n in sorted(names - exports)]
    wrong += [f"{n} is exported and in no installed header"
              for n in sorted(exports - names)]
    for line in wrong:
        print(line)
    print(f"{len(names)} declared, {len(exports)} exported")
    return 1 if wrong or not names else 0


def main(args):
    root = pathlib.Path(args[1])
    if args[0] == "grow":
        return grow(root, pathlib.Path(args[2]), pathlib.Path(args[3]))
    if args[0] == "declared":
        return declared(root, args[2:])
    if args[0] == "freeze":
        return freeze(root)
    return used(root)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
