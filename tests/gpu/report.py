# SPDX-License-Identifier: Apache-2.0
"""The report of gpu-check, in Markdown."""
import datetime
import json
import os
import platform
import subprocess


def said(command, env=None):
    """The output of |command|, or why there is none."""
    try:
        p = subprocess.run(command, capture_output=True, text=True, env=env,
                           timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"{command[0]}: {e}"
    return (p.stdout or p.stderr).strip()


def machine(place, cuda_text, is_standin):
    """Rows of what was checked, and where."""
    smi = "none" if is_standin else said(
        ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,"
         "clocks.max.sm,power.limit", "--format=csv,noheader"])
    doctor = said([place.program("weir"), "doctor", "--json"],
                  dict(place.env, LD_LIBRARY_PATH=place.env["WEIR_CUDA_FOLDER"]
                       + ":" + place.env["LD_LIBRARY_PATH"]))
    try:
        found = json.loads(doctor)["cuda"]
    except (ValueError, KeyError):
        found = doctor[-500:]
    try:
        with open(os.path.join(place.root, "pack.json"), encoding="utf-8") as f:
            pack = json.load(f)
    except (OSError, ValueError):
        pack = {"weir": "not from an archive"}
    now = datetime.datetime.now(datetime.timezone.utc)
    rows = [("date", now.strftime("%Y-%m-%d %H:%M UTC")),
            ("nvidia-smi", smi), ("weir doctor", found),
            ("CUDA's libraries", cuda_text),
            ("machine", f"{platform.platform()}, {os.cpu_count()} CPUs"),
            *pack.items()]
    return rows, found


def title(found, is_standin):
    if is_standin:
        return ("**No GPU: this is a run on the stand-in for CUDA, on memory of "
                "the host. It says nothing of a GPU.**")
    return f"# gpu-check: {found}"


def listed(head, lines):
    return [f"{head}:", ""] + [f"- {line}" for line in lines] + [""] \
        if lines else []


def text(head, rows, results):
    """|results|: (section, run.Result, seconds) each."""
    lines = [head, "", "| what | |", "|---|---|"]
    for name, value in rows:
        value = str(value).replace("\n", "; ").replace("|", "/")
        lines.append(f"| {name} | {value} |")
    lines += ["", "| section | passed | failed | skipped | s |",
              "|---|---|---|---|---|"]
    for name, r, seconds in results:
        lines.append(f"| {name} | {len(r.passed)} | {len(r.failed)} | "
                     f"{len(r.skipped)} | {seconds:.0f} |")
    for name, r, _ in results:
        if not (r.failed or r.skipped or r.figures):
            continue
        lines += ["", f"## {name}", ""]
        lines += listed("Failed", r.failed) + listed("Skipped", r.skipped)
        lines += r.figures
    return "\n".join(lines) + "\n"
