#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/ from what weir says, so that none goes stale.

  make.py WEIR [PICTURE]...      draws them (all); pages need chromium
  make.py WEIR --check           exit 1 when one no longer shows what weir says

A drawing is made again and compared. A photograph of a page cannot be, fonts
differ: made_of.json holds a digest of the data that it shows.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import draw

HERE = pathlib.Path(__file__).resolve().parent
DOCS, ROOT = HERE.parent, HERE.parent.parent
MADE_OF = HERE / "made_of.json"
FIVE = str(HERE / "five.weir.yaml")
# A plan follows from the instruction set, and the picture from no machine.
LENET = ("graphs/lenet_train.weir.yaml", "--cluster", "ps=1,worker=2", "--isa",
         "generic")
DRAWINGS = {
    "placement_model.svg": (draw.model, (FIVE,)),
    "placement_bounds.svg": (draw.bounds, (str(HERE / "five.stg"),
                                           "--processors", "2")),
}
PAGES = {"placement.png": (LENET, (1340, 1600))}
# Bits differ from machine to machine, so the curves of a run are kept.
CURVES, RUN = "training.svg", HERE / "lenet_run.csv"
SUMMARY = "\n  summary: {every: 50, scalars: [loss, acc], csv: run.csv}\n"


def weir(binary, *args):
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
    p = subprocess.run([binary, *args], cwd=ROOT, env=env, timeout=120,
                       capture_output=True, text=True)
    if p.returncode:
        sys.exit(f"weir {' '.join(args)}: {p.returncode}\n{p.stderr}")
    return p.stdout


def drawing(binary, name):
    function, args = DRAWINGS[name]
    return function(json.loads(weir(binary, "place", *args, "--json")))


def digest(binary, name):
    text = weir(binary, "place", *PAGES[name][0], "--json")
    return hashlib.sha256(text.encode()).hexdigest()


def photograph(name, page, width, height):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        sys.exit(f"{name} needs chromium")
    subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu",
                    "--hide-scrollbars", f"--window-size={width},{height}",
                    "--timeout=3000",
                    f"--screenshot={DOCS / name}", page],
                   check=True, capture_output=True, timeout=300)


def take_page(binary, name):
    args, (width, height) = PAGES[name]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "page.html"
        path.write_text(weir(binary, "place", *args, "--format", "html"))
        photograph(name, str(path), width, height)


def record(binary):
    """Three epochs of LeNet, as `summary: {csv: ...}` writes them."""
    with tempfile.TemporaryDirectory() as folder:
        graph = pathlib.Path(folder) / "lenet.weir.yaml"
        graph.write_text((ROOT / LENET[0]).read_text().rstrip("\n") + SUMMARY)
        weir(binary, "train", str(graph), "--epochs", "3", "--events", folder)
        shutil.copyfile(pathlib.Path(folder) / "run.csv", RUN)


def note(binary, name):
    made = json.loads(MADE_OF.read_text()) if MADE_OF.exists() else {}
    made[name] = digest(binary, name)
    MADE_OF.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")


def check(binary):
    made = json.loads(MADE_OF.read_text())
    stale = [n for n in DRAWINGS
             if (DOCS / n).read_text() != drawing(binary, n)]
    stale += [n for n in PAGES if made.get(n) != digest(binary, n)]
    if (DOCS / CURVES).read_text() != draw.curves(RUN.read_text()):
        stale.append(CURVES)
    for name in stale:
        print(f"docs/{name} is stale: docs/pictures/make.py WEIR {name}")
    print(f"{len(DRAWINGS) + len(PAGES) + 1} pictures, {len(stale)} stale")
    return 1 if stale else 0


def main(binary, *names):
    binary = os.path.abspath(binary)
    if names == ("--check",):
        return check(binary)
    for name in names or [*DRAWINGS, *PAGES, CURVES]:
        if name in DRAWINGS:
            (DOCS / name).write_text(drawing(binary, name))
        elif name in PAGES:
            take_page(binary, name)
            note(binary, name)
        elif name == CURVES:
            record(binary)
            (DOCS / CURVES).write_text(draw.curves(RUN.read_text()))
        else:
            sys.exit(f"no picture is called {name}")
        print(f"docs/{name}")
    return 0


sys.exit(main(*sys.argv[1:]))
