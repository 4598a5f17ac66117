# SPDX-License-Identifier: Apache-2.0
"""Checks weir on the GPU of this machine.

Exit status: 0: nothing failed; 1: something did; 5: no libraries of CUDA."""
import argparse
import os
import shutil
import sys
import tarfile
import time
import traceback

import find
import report
import run
import sections


def options():
    p = argparse.ArgumentParser(prog="gpu-check", description="Checks weir on "
                                "the GPU of this machine. Nothing is installed.")
    p.add_argument("--section", action="append", choices=list(sections.ALL),
                   help="run this one only; may be repeated")
    p.add_argument("--cuda", metavar="FOLDER",
                   help="where libcudart.so.13 and libcublasLt.so.13 are")
    p.add_argument("--standin", metavar="BUILD",
                   help="no GPU: on the stand-in that this build made")
    p.add_argument("--report", metavar="FILE", default="report.md",
                   help="written after each section (report.md)")
    return p.parse_args()


def folder_of(o):
    """(folder, text, is_standin)."""
    standin = o.standin and os.path.abspath(
        os.path.join(o.standin, "tests", "cuda", "standin"))
    named = standin or os.environ.get("WEIR_CUDA_FOLDER") or o.cuda
    folder, text = find.find_cuda(named and os.path.abspath(named))
    if folder is None:
        print(f"gpu-check: {text}", file=sys.stderr)
        sys.exit(5)
    with open(os.path.join(folder, find.LIBRARIES[0]), "rb") as f:
        return folder, text, b"standin_functions" in f.read()


def unpack(root):
    """The archive's larger part is packed once more: programs that share most
    of their code then take the room of one."""
    packed = os.path.join(root, "files.tar.xz")
    if not os.path.exists(packed) or os.path.isdir(os.path.join(root, "bin")):
        return
    print("gpu-check: unpacking", flush=True)
    new = os.path.join(root, "new")
    shutil.rmtree(new, ignore_errors=True)
    with tarfile.open(packed) as archive:
        archive.extractall(new)
    for name in sorted(os.listdir(new), key=lambda n: n == "bin"):
        shutil.rmtree(os.path.join(root, name), ignore_errors=True)
        os.rename(os.path.join(new, name), os.path.join(root, name))
    os.rmdir(new)


def run_section(name, place, is_standin):
    before, place.end = time.monotonic(), run.section_end()
    print(f"{name}:", flush=True)
    try:
        r = sections.ALL[name](place, is_standin)
    except Exception:  # the other sections are worth running
        r = run.failure(f"{name}: gpu-check itself:" +
                        run.tail(traceback.format_exc()))
    return name, r, time.monotonic() - before


def main():
    o = options()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    unpack(root)
    folder, text, is_standin = folder_of(o)
    print(f"gpu-check: CUDA's libraries: {text}", flush=True)
    place, results = sections.Place(root, folder), []
    rows, found = report.machine(place, text, is_standin)
    for name in o.section or sections.ALL:
        results.append(run_section(name, place, is_standin))
        with open(o.report, "w", encoding="utf-8") as f:
            f.write(report.text(report.title(found, is_standin), rows, results))
    counts = [sum(len(r[k]) for _, r, _ in results) for k in range(3)]
    print(f"{counts[0]} passed, {counts[1]} failed, {counts[2]} skipped; "
          f"report: {os.path.abspath(o.report)}")
    return 1 if counts[1] else 0


sys.exit(main())
