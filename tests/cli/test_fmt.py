#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir fmt: the meaning stays, a second time changes nothing, files are
replaced whole.

  test_fmt.py WEIR SOURCE_ROOT [TEST...]
"""
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest

WEIR = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
GRAPHS = sorted((ROOT / "graphs").glob("*.yaml"))
BAD = sorted((ROOT / "tests/bad/graphs").glob("*.yaml"))

UGLY = """\


# top
weir:    1
params: {batch:  64,lr : 1e-3} # p
inputs:
    x:   'f32[ 2,3 ]'   # an input

    # about y
    y: f32[2]=ones( [2] )


nodes:
    a:  relu( x )
    bb: 'relu( a )'
    cc: add(a ,1 ) @ cpu:0
    e:
        op: matmul
        in: [ a,
          bb ]   # two
        attrs: {transpose_b:   true, name: "f( a , b)"}
    d: 'einsum("m k,k n -> m n",a,a,k = 3)'
    s:
        scan:
            # inner
            over:   {xs: x}
            stack: {y: "relu( xs )"}
placement:
- {match: "*", device:   "/job:ps"}
-   match: a
    device: cpu:0
x-text: |
      free   text
        more
outputs:
 - a
 - bb
# end

"""
PRETTY = """\
# top
weir: 1
params: {batch: 64, lr: 1e-3}  # p
inputs:
  x: "f32[2, 3]"      # an input

  # about y
  y: f32[2] = ones([2])

nodes:
  a:  relu(x)
  bb: "relu(a)"
  cc: add(a, 1) @ cpu:0
  e:
    op: matmul
    in: [a,
      bb]    # two
    attrs: {transpose_b: true, name: "f( a , b)"}
  d: 'einsum("m k,k n -> m n", a, a, k=3)'
  s:
    scan:
      # inner
      over: {xs: x}
      stack: {y: "relu(xs)"}
placement:
  - {match: "*", device: "/job:ps"}
  - match: a
    device: cpu:0
x-text: |
      free   text
        more
outputs:
  - a
  - bb
# end
"""


def call(*args, **more):
    return subprocess.run([WEIR, *map(str, args)], env=CLEAN, timeout=60,
                          capture_output=True, **more)


def fmt(text):
    return call("fmt", "-", input=text)


def patched(text, diff):
    """|text| after |diff|, a unified diff of one file, which must fit exactly."""
    head, *lines = diff.splitlines(keepends=True)
    assert head.startswith("--- ") and lines[0].startswith("+++ ")
    old, new, at = text.splitlines(keepends=True), [], 0
    for line in lines[1:]:
        sign, body = line[0], line[1:]
        if sign == "@":
            first, count = re.match(r"@@ -(\d+)(?:,(\d+))? ", line).groups("1")
            start = int(first) - (int(count) > 0)
            new += old[at:start]
            at = start
        elif sign == "\\":  # the line before it has no end
            assert before == "-" and at == len(old) and old[-1][-1] != "\n"
        else:
            if sign in " -":
                assert old[at].rstrip("\n") == body.rstrip("\n"), (at, line)
                at += 1
            if sign in " +":
                new.append(body)
            before = sign
    return "".join(new + old[at:])


def mangled(text):
    """The same graph: twice the indentation, blanks around commas, quotes of
    the other kind."""
    lines = []
    for line in text.splitlines():
        code, _, comment = line.partition(" #")
        if "\\" not in code and '""' not in code and "'" not in code and \
                code.count('"') == 2 and "{" not in code:
            code = code.replace('"', "'")
        body = code.lstrip(" ")
        if body[:1] != "#" and not set("\"'") & set(body):
            body = re.sub(r"(?<=[\w)\]]), (?=\w)", "  ,   ", body)
        code = " " * 2 * (len(code) - len(code.lstrip(" "))) + body
        lines.append(code + (" #" + comment if comment else "") + "  ")
    return "\r\n".join(lines) + "\n\n\n"


class Fmt(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def meaning(self, path):
        """The loaded graph, without the places of its lines; None: it does not
        load."""
        p = call("show", "graph", path, "--json")
        text = re.sub(rb'"(line|col|end_line|end_col)": \d+', b"", p.stdout)
        return None if p.returncode else text.replace(os.fsencode(path), b"")

    def test_form(self):
        p = fmt(UGLY.encode())
        self.assertEqual((p.stdout.decode(), p.stderr), (PRETTY, b""))
        self.assertEqual(fmt(PRETTY.encode()).stdout.decode(), PRETTY)

    def test_own_graphs_are_canonical(self):
        p = call("fmt", "--check", *GRAPHS)
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, b"", b""))

    def test_meaning_stays(self):
        loadable = 0
        for path in GRAPHS + BAD[::5]:
            p = fmt(path.read_bytes())
            if p.returncode:
                self.assertRegex(p.stderr, rb"error\[W10(0\d|1\d)\]", path)
                continue
            self.assertEqual(fmt(p.stdout).stdout, p.stdout, path)
            mate = self.path / path.name
            mate.write_bytes(p.stdout)
            was = self.meaning(path)
            self.assertEqual(self.meaning(mate), was, path)
            loadable += was is not None
        self.assertGreaterEqual(loadable, len(GRAPHS))

    def test_mangled_graphs_mean_the_same(self):
        for path in GRAPHS:
            text = path.read_text()
            p = fmt(mangled(text).encode())
            self.assertEqual(p.returncode, 0, p.stderr)
            again = fmt(p.stdout)
            self.assertEqual(again.stdout, p.stdout, path)
            self.assertNotIn(b"\r", p.stdout)
            mate = self.path / path.name
            mate.write_bytes(p.stdout)
            self.assertEqual(self.meaning(mate), self.meaning(path), path)
            comments = re.findall(r"#.*", text)
            self.assertEqual(re.findall(r"#.*", p.stdout.decode()), comments)

    def test_files(self):
        path, link = self.path / "a.weir.yaml", self.path / "l.weir.yaml"
        path.write_text(UGLY)
        path.chmod(0o640)
        link.symlink_to(path.name)
        p = call("fmt", "--check", path)
        self.assertEqual((p.returncode, p.stdout.decode()), (1, f"{path}\n"))
        self.assertEqual(path.read_text(), UGLY)
        p = call("fmt", link)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(path.read_text(), PRETTY)
        self.assertTrue(link.is_symlink())
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o640)
        self.assertEqual(sorted(p.name for p in self.path.iterdir()),
                         ["a.weir.yaml", "l.weir.yaml"])
        inode = path.stat().st_ino
        self.assertEqual(call("fmt", path).returncode, 0)
        self.assertEqual(path.stat().st_ino, inode)  # nothing to write

    def test_diff(self):
        path = self.path / "a.weir.yaml"
        path.write_text("weir: 1\ninputs: {x: 'f32[2]'}\n\n\nnodes:\n"
                        "    y: relu( x )\noutputs: [y]\n")
        was = path.read_text()
        p = call("fmt", "--diff", path)
        self.assertEqual((p.returncode, p.stderr), (1, b""))
        self.assertEqual(p.stdout.decode(), f"""\
--- {path}
+++ {path}
@@ -1,7 +1,6 @@
 weir: 1
-inputs: {{x: 'f32[2]'}}
+inputs: {{x: "f32[2]"}}
 
-
 nodes:
-    y: relu( x )
+  y: relu(x)
 outputs: [y]
""")
        self.assertEqual(path.read_text(), was)
        again = call("fmt", "--diff", "--check", path)
        self.assertEqual((again.returncode, again.stdout), (1, p.stdout))
        p = call("fmt", "--diff", "-", input=was.encode())
        self.assertIn(b"--- <stdin>\n", p.stdout)
        self.assertEqual(p.returncode, 1)
        for look in ("--check", "--diff"):
            self.assertEqual(call("fmt", look, "-q", path).returncode, 2)
        path.write_text(fmt(was.encode()).stdout.decode())
        p = call("fmt", "--diff", path, *GRAPHS)
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, b"", b""))

    def test_a_diff_leads_to_the_canonical_form(self):
        texts = [UGLY, UGLY.rstrip("\n"), UGLY.replace("\n", "\r\n"),
                 *(path.read_text() for path in BAD[::20]),
                 *(mangled(path.read_text()) for path in GRAPHS[::4]),
                 *(re.sub(r"((?:.*\n){12}.+)", r"\1 ", path.read_text())
                   for path in GRAPHS[::2])]
        groups = 0
        for text in texts:
            data = text.encode()
            want = fmt(data)
            if want.returncode or want.stdout == data:
                continue
            p = call("fmt", "--diff", "-", input=data)
            self.assertEqual((p.returncode, p.stderr), (1, b""))
            self.assertEqual(patched(data.decode(), p.stdout.decode()),
                             want.stdout.decode())
            groups += p.stdout.count(b"\n@@ ")
        self.assertGreater(groups, len(GRAPHS))

    def test_refused(self):
        path = self.path / "bad.weir.yaml"
        path.write_text("weir: 1\nnodes: {a: [}\n")
        p = call("fmt", path)
        self.assertEqual(p.returncode, 3)
        self.assertIn(b"error[W1001]", p.stderr)
        self.assertEqual(path.read_text(), "weir: 1\nnodes: {a: [}\n")
        self.assertEqual(call("fmt", self.path / "none").returncode, 5)
        self.assertEqual(call("fmt", self.path).returncode, 5)
        os.mkfifo(self.path / "pipe")
        self.assertEqual(call("fmt", self.path / "pipe").returncode, 5)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
