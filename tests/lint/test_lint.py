#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lint must find each planted fault, once."""
import os
import shutil
import subprocess
import sys
import tempfile

LINT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lint.py")
SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
EIGHT = "(int a, int b, int c, int d,\n    int e, int f, int g, int h)"
LONG = SPDX + "int f(void) {\n" + "  g();\n" * 110 + "}\n"
ENUM = "typedef enum hue { RED, COUNT } hue;\n"
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
    ("doors", "kernels/cuda/x.c", SPDX + "#include <cuda_runtime_api.h>\n",
     "another door"),
    ("doors", "kernels/cuda/x.cu", SPDX + "#include <cooperative_groups.h>\n",
     "another door"),
    ("rooms", "kernels/cuda/x.cu", SPDX + '#include "runtime/exec/pool.h"\n',
     "runtime/exec/"),
    ("spdx", "kernels/cuda/x.cu", "int x;\n", "no SPDX"),
    ("doors", "tests/net/x.c", SPDX + "#include <driver_types.h>\n",
     "another door"),
    ("doors", "tests/cuda/x.c", SPDX + "#include <driver_types.h>\n", None),
    ("doors", "tests/net/x.c", SPDX + "#include <grpc/grpc.h>\n", None),
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
    ("rooms", "cli/x.c", SPDX + '#include "runtime/tools/costs.h"\n', None),
    ("wings", {f"ops/{i}.c": SPDX for i in range(31)}, None,
     "ops:1: 31 .c and .h files"),
    ("wings", {f"ops/{i}.c": SPDX for i in range(30)}, None, None),
    ("pages", "ops/math/x.c", SPDX, "ops/math:1: no README.md"),
    ("pages", "ops/README.md", "A paragraph.\n", "no heading"),
    ("pages", "ops/README.md", "# ops\n\n| a |\n|---|\n", "no paragraph"),
    ("pages", "ops/README.md", "# ops\nAll of them.\n", None),
    ("params", "ops/x.c", SPDX + "static int f" + EIGHT + " {\n}\n",
     "f has 8 parameters"),
    ("params", "ops/x.h", SPDX + "int f" + EIGHT + ";\n", "f has 8"),
    ("params", "runtime/tools/x.c", SPDX + "int f" + EIGHT + " {\n}\n", "f has"),
    ("params", "cli/x.c", SPDX + "int f(int (*g)(int, int), int a[2], int b, "
     "int c, int d, int e, int h) {\n  g(1, 2, 3, 4, 5, 6, 7, 8);\n}\n", None),
    ("names", "ops/x.c", SPDX + "/* As in gone.c. */\n", "no file gone.c"),
    ("names", "ops/x.c", SPDX + "/* As in ops/x.c and cmd_<name>.c. */\n", None),
    ("names", "ops/x.c", SPDX + "/* Calls weir_gone. */\nint weir_x;\n",
     "no weir_gone"),
    ("names", "ops/x.c", SPDX + "/* weir_x, weir_x_* */\nint weir_x, weir_x_y;\n",
     None),
    ("names", "docs/x.md", "Say `weir run --gone`.\n", "no option --gone"),
    ("names", "docs/x.md", "See [gone](gone.md).\n", "no file gone.md"),
    ("tables", "ops/x.c", SPDX + ENUM + 'const char *const t[] = {"a"};\n'
     "int f(hue h) {\n  return t[h][0];\n}\n", "[VALUE] ="),
    ("tables", "ops/x.c", SPDX + ENUM + 'const char *const t[] = {[RED] = "a"};\n'
     "int f(hue h) {\n  return t[h][0];\n}\n", "no TABLE_OF"),
    ("tables", "ops/x.c", SPDX + ENUM + 'const char *const t[] = {"a"};\n'
     "struct s { hue of; };\nint f(struct s *s) {\n  return t[s->of][0];\n}\n",
     "[VALUE] ="),
    ("tables", "ops/x.c", SPDX + ENUM + 'const char *const t[] = {"a", "b"};\n'
     "int f(int i) {\n  return t[i][0];\n}\n", None),
    ("tables", "ops/x.c", SPDX + ENUM + 'const char *const t[] = {[RED] = "a"};\n'
     "WEIR_TABLE_OF(t, COUNT);\nint f(hue h) {\n  return t[h][0];\n}\n", None),
]
# name: files, the check's findings. Each file is compiled; a folder tells its
# room.
OBJECTS = [
    ("links", {"ops/a.c": "int g(void); int f(void) { return g(); }",
               "runtime/graph/b.c": "int g(void) { return 1; }"},
     "ops/ (2) needs g of runtime/graph/b.c"),
    ("links", {"kernels/a.c": "int g(void); int f(void) { return g(); }",
               "runtime/graph/b.c": "int g(void) { return 1; }"}, "needs g"),
    ("links", {"runtime/graph/a.c": "int g(void); int f(void) { return g(); }",
               "ops/b.c": "int g(void) { return 1; }"}, None),
    ("links", {"cli/a.c": "extern int g; int f(void) { return g; }",
               "runtime/base/b.c": "int g = 1;"}, "cli/ may need"),
    ("unused", {"ops/a.c": "int f(void) { return 1; }"}, "nothing needs f"),
    ("unused", {"ops/a.c": "const int k = 1;"},
     "nothing needs k"),
    ("unused", {"ops/a.c": "int f(void) { return 1; }",
                "tests/b.c": "int f(void); int g(void) { return f(); }"},
     "tests alone need f"),
    ("unused", {"ops/a.c": "int f(void) { return 1; } int k(void) { return f(); }",
                "cli/b.c": "int k(void); int main(void) { return k(); }"},
     "f could be static"),
    ("unused", {"ops/a.c": "int f(void) { return 1; } int k(void) { return f(); }",
                "cli/b.c": "int k(void); int main(void) { return k(); }",
                "tests/b.c": "int f(void); int g(void) { return f(); }"}, None),
    ("unused", {"ops/a.c": "int f(void) { return 1; }",
                "cli/b.c": "int f(void); int main(void) { return f(); }"}, None),
    ("unused", {"runtime/net/a.c": "int f(void) { return 1; }"}, None),
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


def run_objects(check, files):
    """Compiles |files| as meson does, those of cli/ for a target of their own,
    and checks the targets by their names in the build folder."""
    with tempfile.TemporaryDirectory() as root:
        out, targets = os.path.join(root, "out"), set()
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as f:
                f.write(text)
            of_cli = path.startswith("cli/")
            target = "cli/weir" if of_cli else "libx.a"
            name = path.removeprefix("cli/") if of_cli else path
            targets.add(target)
            folder = os.path.join(out, target + ".p")
            os.makedirs(folder, exist_ok=True)
            subprocess.run(["cc", "-c", full, "-o", os.path.join(
                folder, name.replace("/", "_") + ".o")], check=True)
        env = dict(os.environ, WEIR_SOURCE_ROOT=root, GIT_DIR="/nonexistent")
        p = subprocess.run([sys.executable, LINT, "--" + check,
                            *sorted(targets)], env=env, cwd=out,
                           capture_output=True, text=True)
        return p.returncode, p.stdout + p.stderr


def judge(what, want, code, out):
    """Whether the check found |want|, or nothing where that is None."""
    ok = (code == 1 and want in out) if want else code == 0
    if not ok:
        print(f"{what}: want {want!r}, got {code}: {out}")
    return ok


def main():
    results = [judge(f"{check} {path}", want, *run(check, path if text is None else {path: text}))
               for check, path, text, want in CASES]
    if shutil.which("cc") and shutil.which("nm"):
        results += [judge(f"{check} {files}", want, *run_objects(check, files))
                    for check, files, want in OBJECTS]
    else:
        print("note: no cc or nm here, links and unused were not planted")
    bad = results.count(False)
    print(f"{len(results)} planted, {bad} wrong")
    return 1 if bad else 0


sys.exit(main())
