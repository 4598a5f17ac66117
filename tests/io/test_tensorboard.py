#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Event files as TensorBoard itself reads them, for its scalars, histograms
and graphs plugins.

  test_tensorboard.py TEST_IO_EVENT_FILE

Needs the virtual environment of tools/setup --tests, or a Python with
tensorboard that WEIR_PEERS_PYTHON names; else it is skipped.
"""
import os
import subprocess
import sys
import tempfile

SKIP = 77


def load():
    try:
        import tensorboard  # noqa: F401
        return True
    except ImportError:
        pass
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for other in (os.environ.get("WEIR_PEERS_PYTHON"),
                  os.path.join(cache, "weir-tests/tensorboard/bin/python")):
        if other and os.path.exists(other) and "WEIR_REEXEC" not in os.environ:
            os.execve(other, [other] + sys.argv,
                      dict(os.environ, WEIR_REEXEC="1"))
    return False


def main(program):
    if not load():
        print("skipped: no tensorboard package (tools/setup --tests installs "
              "it)")
        return SKIP
    from tensorboard import context
    from tensorboard.backend.event_processing import data_provider
    from tensorboard.backend.event_processing import plugin_event_multiplexer
    from tensorboard.data import provider as base_provider

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "write", os.path.join(folder, "run1")],
                       check=True)
        multiplexer = plugin_event_multiplexer.EventMultiplexer(
            tensor_size_guidance={"scalars": 1000, "histograms": 100})
        multiplexer.AddRunsFromDirectory(folder)
        multiplexer.Reload()
        provider = data_provider.MultiplexerDataProvider(multiplexer, folder)
        ctx = context.RequestContext()
        sample = {"experiment_id": "", "downsample": 1000}

        tags = provider.list_scalars(ctx, experiment_id="",
                                     plugin_name="scalars")
        assert set(tags) == {"run1"}, tags
        assert set(tags["run1"]) == {"train/loss"}, tags["run1"]
        points = provider.read_scalars(
            ctx, plugin_name="scalars", **sample,
            run_tag_filter=base_provider.RunTagFilter())["run1"]["train/loss"]
        assert [p.step for p in points] == [i * 10 for i in range(20)], points
        for i, p in enumerate(points):
            assert abs(p.value - 1 / (i + 1)) < 1e-7, p
            assert abs(p.wall_time - (1700000000.25 + i)) < 1e-6, p

        tags = provider.list_tensors(ctx, experiment_id="",
                                     plugin_name="histograms")
        assert set(tags["run1"]) == {"layer/w"}, tags
        tensors = provider.read_tensors(
            ctx, plugin_name="histograms", **sample,
            run_tag_filter=base_provider.RunTagFilter())["run1"]["layer/w"]
        assert [t.step for t in tensors] == [0, 100], tensors
        rows = tensors[0].numpy  # left, right, count
        assert rows[:, 2].sum() == 5, rows
        for value, count in ((-1.0, 1), (0.5, 2), (3.0, 1)):
            inside = (rows[:, 0] <= value) & (value < rows[:, 1])
            # TensorBoard cuts the last bucket off at the maximum.
            inside |= (rows[:, 1] == value) & (value == 3.0)
            assert rows[inside, 2].sum() == count, (value, rows)

        graph = multiplexer.Graph("run1")
        assert [n.name for n in graph.node] == ["x", "layer/w", "layer/y"]
        assert list(graph.node[2].input) == ["x", "layer/w:1", "^x"]
        assert graph.node[1].device.endswith("CPU:0")
        assert graph.versions.producer == 22
    print("TensorBoard reads 20 scalars, 2 histograms, 3 nodes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
