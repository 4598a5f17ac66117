# SPDX-License-Identifier: Apache-2.0
"""The sections of gpu-check: what each runs. A program that is not in the
archive is skipped by name."""
import os
import shutil
import time

import run

# A program and its arguments.
OPS = (("test_cuda_bodies",), ("test_cuda_element",), ("test_cuda_rows",),
       ("run_gpu",))
HOST = (("test_cuda_device",), ("test_cuda_gemm",), ("test_cuda_launch",),
        ("test_cuda_standin_lt",))
# Few, and as unlike as can be: a tool makes them much slower.
WATCHED = (("test_cuda_bodies",), ("test_cuda_rows",),
           ("run_gpu", "add", "where", "cast"))
TOOLS = ("memcheck", "racecheck")
# Their output is for a reader too.
FIGURES = ("run_gpu", "test_cuda_standin_lt")

# (name, arguments of weir with the GPU, the same for the CPU): both outputs are
# the same. {root} is the archive's folder.
GRAPHS = ()
TRAIN = ()


class Place:
    """The archive: where its parts are, and what programs run with."""

    def __init__(self, root, cuda):
        self.root, build = root, os.path.join(root, "bin")
        self.end = run.section_end()  # of the section that runs
        paths = [build, os.path.join(root, "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
        self.env = dict(os.environ, WEIR_BUILD_ROOT=build,
                        WEIR_SOURCE_ROOT=root, WEIR_CUDA_FOLDER=cuda,
                        LD_LIBRARY_PATH=":".join(p for p in paths if p))

    def program(self, name):
        return os.path.join(self.root, "bin", name)


def tests(place, programs, tool="", before=()):
    """Runs |programs|, under a tool if |before| is its command."""
    steps, missing = [], []
    for program, *arguments in programs:
        path = place.program(program)
        name = " ".join((tool, program)).strip()
        if os.path.exists(path):
            steps.append((name, [*before, path, *arguments],
                          program in FIGURES and not tool))
        else:
            missing.append(run.skipped(f"{name}: not in this archive"))
    return run.merge([run.steps_until(place.end, steps, place.env),
                      *missing])


def ops(place, _small):
    return tests(place, OPS)


def host(place, _small):
    return tests(place, HOST)


def compare_one(place, name, sides):
    """Two commands of weir, whose outputs must be the same."""
    outputs = []
    for arguments in sides:
        command = [place.program("weir")] + [a.format(root=place.root)
                                             for a in arguments]
        left = min(run.STEP_SECONDS, place.end - time.monotonic())
        if left < 1:
            return run.skipped(f"{name}: the section's time is over")
        r, out = run.step(name, command, place.env, left)
        if r.failed:
            return r
        outputs.append(out)
    if outputs[0] == outputs[1]:
        return run.Result([name], [], [], [])
    return run.Result([], [f"{name}: on the GPU:{run.tail(outputs[0])}\n"
                           f"  on the CPU:{run.tail(outputs[1])}"], [], [])


def compare(place, table, what):
    if not table:
        return run.skipped(f"{what}: no commands yet")
    return run.merge([compare_one(place, name, sides)
                      for name, *sides in table])


def graphs(place, _small):
    return compare(place, GRAPHS, "graphs")


def train(place, _small):
    return compare(place, TRAIN, "train")


def sanitizer(place, _small):
    tool = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin:/usr/local/cuda/"
        "compute-sanitizer")
    if tool is None:
        return run.skipped("compute-sanitizer is not on this machine")
    results = []
    for name in TOOLS:
        command = [tool, "--tool", name, "--error-exitcode", "9"]
        if name == "memcheck":  # some tests ask for what CUDA refuses
            command += ["--report-api-errors", "no"]
        results.append(tests(place, WATCHED, name, command))
    return run.merge(results)


def bench(place, small):
    path = place.program("bench_gpu")
    if not os.path.exists(path):
        return run.skipped("bench_gpu: not in this archive")
    command = [path] + ["--small"] * small
    return run.steps_until(place.end, [("bench_gpu", command, True)],
                           place.env)


# In the order in which they run.
ALL = {"ops": ops, "host": host, "graphs": graphs, "train": train,
       "sanitizer": sanitizer, "bench": bench}
