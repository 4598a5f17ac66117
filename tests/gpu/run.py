# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of a section, each with a limit, and reads what they say."""
import collections
import os
import re
import shutil
import signal
import subprocess
import time

STEP_SECONDS, SECTION_SECONDS, TAIL_LINES = 120, 480, 25
SKIPPED_EXIT = 77

# What a step found: lists of "name: reason" for failed and skipped ones.
Result = collections.namedtuple("Result", "passed failed skipped figures")


def nothing():
    return Result([], [], [], [])


def passed(name):
    return Result([name], [], [], [])


def failure(text):
    return Result([], [text], [], [])


def skipped(why):
    return Result([], [], [why], [])


def merge(results):
    all_of = nothing()
    for r in results:
        for mine, theirs in zip(all_of, r):
            mine += theirs
    return all_of


def start(command, env, seconds):
    """(exit status, output); None as status: it ran too long. All that it
    started ends with it."""
    if shutil.which("stdbuf"):  # the lines before a crash are worth most
        command = ["stdbuf", "-oL", *command]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, errors="replace",
                          start_new_session=True) as p:
        try:
            out, _ = p.communicate(timeout=seconds)
            return p.returncode, out
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, _ = p.communicate()
            return None, out


def tail(out):
    lines = out.rstrip().splitlines()[-TAIL_LINES:]
    return "".join("\n    " + line[:300] for line in lines)


def tests_of(name, out):
    """The tests of a cmocka program, each with the words before its verdict."""
    r, words = nothing(), []
    for line in out.splitlines():
        m = re.match(r"\[ +(OK|FAILED|SKIPPED|RUN) +\] (\w+)$", line)
        if not m:
            words.append(line)
            continue
        verdict, test = m.groups()
        seen = any(x.startswith(f"{name}/{test}") for x in
                   r.passed + r.failed + r.skipped)
        if verdict != "RUN" and not seen:
            said = "".join("\n    " + w[:300] for w in words[-TAIL_LINES:])
            if verdict == "OK":
                r.passed.append(f"{name}/{test}")
            elif verdict == "SKIPPED":
                why = words[-1].removeprefix("skipped, ") if words else "?"
                r.skipped.append(f"{name}/{test}: {why}")
            else:
                r.failed.append(f"{name}/{test}:{said}")
        words = []
    return r


def end_of(status, seconds):
    if status is None:
        return f"ran longer than {seconds:.0f} s"
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"exit status {status}"


def step(name, command, env, seconds):
    """Runs |command|; its tests, or itself where it has none, as a result."""
    status, out = start(command, env, seconds)
    r = tests_of(name, out)
    if status == SKIPPED_EXIT:
        r.skipped.append(f"{name}: " + (out.strip().splitlines() or ["?"])[-1])
    elif status != 0 and (status is None or status < 0 or not r.failed):
        r.failed.append(f"{name}: {end_of(status, seconds)}{tail(out)}")
    elif status == 0 and not (r.passed or r.skipped):
        r.passed.append(name)
    return r, out


def section_end():
    """When a section that begins now is over."""
    return time.monotonic() + SECTION_SECONDS


def steps_until(end, steps, env):
    """Runs |steps|, (name, command, keep the output as figures) each, until
    the section is over."""
    results = []
    for name, command, figures in steps:
        left = min(STEP_SECONDS, end - time.monotonic())
        if left < 1:
            results.append(skipped(f"{name}: the section's time is over"))
            continue
        before = time.monotonic()
        r, out = step(name, command, env, left)
        if figures:
            r.figures.append(f"{name}\n\n```\n{out.rstrip()}\n```")
        print(f"  {name}: {len(r.passed)} passed, {len(r.failed)} failed, "
              f"{len(r.skipped)} skipped, {time.monotonic() - before:.1f} s",
              flush=True)
        results.append(r)
    return merge(results)
