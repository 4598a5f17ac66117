# SPDX-License-Identifier: Apache-2.0
"""The sections of gpu-check: what each runs. A program that is not in the
archive is skipped by name."""
import os
import shutil

import graphs
import peers
import run

# A program and its arguments. All other tests of the archive are of ops.
HOST = (("test_cuda_device",), ("test_cuda_gemm",), ("test_cuda_launch",),
        ("test_cuda_run",), ("test_cuda_control",), ("test_cuda_peer",),
        ("test_cuda_tensor",), ("test_cuda_dlpack",), ("test_cuda_tune",),
        ("test_cuda_graph",), ("test_cuda_standin_lt",))
# Few, and as unlike as can be: a tool makes them much slower.
WATCHED = (("test_cuda_bodies",), ("test_cuda_rows",),
           ("run_gpu", "add", "where", "cast"))
TOOLS = ("memcheck", "racecheck")
# Their output is for a reader too.
FIGURES = ("run_gpu", "test_cuda_standin_lt")


class Place:
    """The archive: where its parts are, and what programs run with."""

    def __init__(self, root, cuda):
        self.root, build = root, os.path.join(root, "bin")
        self.end = run.section_end()  # of the section that runs
        paths = [build, os.path.join(root, "lib"), cuda,
                 os.environ.get("LD_LIBRARY_PATH", "")]
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
    names = sorted(n for n in os.listdir(os.path.join(place.root, "bin"))
                   if n.startswith("test_cuda_") and (n,) not in HOST)
    return tests(place, [(n,) for n in names] + [("run_gpu",)])


def host(place, _small):
    return tests(place, HOST)


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
ALL = {"ops": ops, "host": host, "graphs": graphs.graphs, "train": graphs.train,
       "sanitizer": sanitizer, "bench": bench, "peers": peers.peers}
