#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs into a folder and uses the files there: pkg-config, headers, library,
command, manual page, examples, documentation.

  test_install.py BUILD_ROOT SOURCE_ROOT
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, SOURCE = (pathlib.Path(a) for a in sys.argv[1:3])
SKIP = 77


def call(*args, **more):
    p = subprocess.run([str(a) for a in args], capture_output=True, text=True,
                       timeout=120, **more)
    if p.returncode:
        sys.exit(f"{args}: {p.returncode}\n{p.stdout}{p.stderr}")
    return p.stdout


def only(root, name):
    found = sorted(root.rglob(name))
    if not found:
        sys.exit(f"{name} was not installed")
    return found[0]


def follow_links(doc):
    """The documentation is whole: each link of a page that people begin with, and
    each picture, leads to an installed file."""
    pages = [doc / "README.md", doc / "CONTRIBUTING.md"]
    for page in sorted((SOURCE / "docs").glob("*.md")):
        pages.append(doc / "docs" / page.name)
    for page in pages:
        if not page.is_file():
            sys.exit(f"{page.relative_to(doc)} was not installed")
        links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
        for link in links:
            if "://" not in link and not (page.parent / link).is_file():
                sys.exit(f"{page.relative_to(doc)}: {link} was not installed")


def moved(root, env):
    """The command starts from any prefix: nothing in it names the one that it
    was built for, nor the build folder."""
    weir = only(root, "weir")
    prefix = weir.parent.parent
    for word in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]",
                           call("readelf", "-d", weir)):
        if any(not part.startswith("$ORIGIN") for part in word.split(":")):
            sys.exit(f"the command looks for libraries in {word}")
    with tempfile.TemporaryDirectory() as other:
        place = pathlib.Path(other) / "a b" / "opt"
        shutil.copytree(prefix, place, symlinks=True)
        hidden = prefix.with_name("hidden")
        prefix.rename(hidden)
        try:
            out = call(place / "bin/weir", "run", "--quiet",
                       only(place, "tiny_matmul.weir.yaml"), env=env, cwd="/")
        finally:
            hidden.rename(prefix)
        if not out.startswith("c  f32[2, 2]"):
            sys.exit(f"from {place} the command prints {out}")
        pc = only(place, "weir.pc")
        flags = call("pkg-config", "--variable=prefix", "weir", cwd="/",
                     env=dict(os.environ, PKG_CONFIG_PATH=str(pc.parent)))
        if pathlib.Path(flags.strip().replace("\\", "")).resolve() != place:
            sys.exit(f"weir.pc at {place} names {flags}")


def main():
    if not shutil.which("pkg-config") or not shutil.which("cc"):
        return SKIP
    with tempfile.TemporaryDirectory() as root:
        root = pathlib.Path(root)
        call("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root)
        library = only(root, "libweir.so.0")
        pc = only(root, "weir.pc")
        env = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent),
                   LD_LIBRARY_PATH=str(library.parent))
        flags = call("pkg-config", "--cflags", "--libs", "weir",
                     env=env).split()
        call("cc", SOURCE / "docs/embed/tiny.c", *flags, "-o", root / "tiny")
        if call(root / "tiny", env=env) != "2 1\n4 3\n":
            sys.exit("the sample prints something else")
        if list(root.rglob("tools.h")):
            sys.exit("tools.h is the command's own and was installed")
        # The command stands alone: it needs no libweir.so.
        env = {k: v for k, v in env.items()
               if not k.startswith("WEIR_") and k != "LD_LIBRARY_PATH"}
        call(only(root, "weir"), "version", env=env)
        if ".TH WEIR 1" not in only(root, "weir.1").read_text():
            sys.exit("no manual page")
        for name, sign in (("bash-completion/completions/weir", "complete -F"),
                           ("zsh/site-functions/_weir", "#compdef weir"),
                           ("fish/vendor_completions.d/weir.fish", "-c weir")):
            if sign not in (only(root, "weir.1").parents[2] / name).read_text():
                sys.exit(f"no completion {name}")
        moved(root, env)
        doc = only(root, "LICENSE").parent
        for name in ("tiny.c", "train.c", "plan.c", "driver.c", "quantize.h",
                     "task.c"):
            if not (doc / "docs/embed" / name).is_file():
                sys.exit(f"docs/embed/{name} was not installed")
        only(root, "lenet_train.weir.yaml")
        follow_links(doc)
        graph = only(root, "tiny_matmul.weir.yaml")
        call(only(root, "weir"), "run", graph, env=env)
        soname = call("readelf", "-d", library)
        if "libweir.so.0]" not in soname:
            sys.exit(f"SONAME is wrong:\n{soname}")
    return 0


sys.exit(main())
