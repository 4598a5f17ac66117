#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lint must find what it is there to find: each planted fault, once."""
import os
import subprocess
import sys
import tempfile

LINT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lint.py")
SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
LONG = SPDX + "int f(void) {\n" + "  g();\n" * 110 + "}\n"
FUNCTION = SPDX + "int weir_y(int a) {\n  return a;\n}\n"
CASES = [
    ("rooms", "runtime/base/x.c", SPDX + '#include "runtime/graph/graph.h"\n',
     "runtime/graph/"),
    ("rooms", "runtime/io/x.c", SPDX + '#include "runtime/device/device.h"\n',
     "is 2"),
    ("rooms", "cli/x.c", SPDX + '#include "runtime/base/alloc.h"\n',
     "cli/ may not"),
    ("rooms", "cli/x.c", SPDX + '#include "runtime/weir.h"\n', None),
    ("rooms", "runtime/exec/x.c", SPDX + '#include "kernels/kernel.h"\n', None),
    ("doors", "ops/x.c", SPDX + "#include <yaml.h>\n", "another door"),
    ("docs", "ops/x.h", SPDX + "\nint weir_x(int a);\n", "weir_x"),
    ("docs", "ops/x.h", SPDX + "\n/* Doubles. */\nint weir_x(int a);\n", None),
    ("declared", {"ops/x.h": SPDX + "int weir_y(int a);\n", "ops/y.c": FUNCTION},
     None, "is defined in ops/y.c"),
    ("declared", {"ops/y.h": SPDX + "int weir_y(int a);\n", "ops/y.c": FUNCTION},
     None, None),
    ("declared", {"ops/y_internal.h": SPDX + "int weir_y(int a);\n",
                  "ops/y.c": FUNCTION}, None, None),
    ("declared", {"ops/nn/y.h": SPDX + "int weir_y(int a);\n",
                  "ops/y.c": FUNCTION}, None,
     "is defined in ops/y.c"),
    ("length", "ops/x.c", LONG, "112 lines"),
    ("length", "ops/x.c", SPDX + "int a;\n" * 501, "at most 500"),
    ("spdx", "ops/x.c", "int a;\n", "no SPDX"),
    ("forbidden", "ops/x.c", SPDX + "void f(void) {\n  abort();\n}\n", "abort"),
    ("forbidden", "ops/x.c", SPDX + '/* abort() */ char *a = "exit(1)";\n',
     None),
    ("forbidden", "cli/x.c", SPDX + "void f(void) {\n  exit(1);\n}\n", None),
]


def run(check, files):
    with tempfile.TemporaryDirectory() as root:
        for name, content in files.items():
            full = os.path.join(root, name)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as f:
                f.write(content)
        env = dict(os.environ, WEIR_SOURCE_ROOT=root, GIT_DIR="/nonexistent")
        p = subprocess.run([sys.executable, LINT, check], env=env,
                           capture_output=True, text=True)
        return p.returncode, p.stdout


def main():
    bad = 0
    for check, path, text, want in CASES:
        code, out = run(check, path if text is None else {path: text})
        ok = (code == 1 and want in out) if want else code == 0
        if not ok:
            bad += 1
            print(f"{check} {path}: want {want!r}, got {code}: {out}")
    print(f"{len(CASES)} planted, {bad} wrong")
    return 1 if bad else 0


sys.exit(main())
