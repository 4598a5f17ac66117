# SPDX-License-Identifier: Apache-2.0
"""Params of graphs whose outputs tests print: whole, the 7 million numbers of
lstm_lm are 100 MB of text."""
import pathlib

# Networks of hundreds of nodes: test_networks.py runs them, made small. A test of
# every graph in many ways leaves them out, as their ops, shapes and blocks are
# those of smaller graphs and each way would take seconds.
NETWORKS = ("resnet50", "mobilenet_v3", "bert_base", "gpt2_small")


def graphs(root):
    """The files of graphs/ but for the networks."""
    return [p for p in sorted(pathlib.Path(root, "graphs").glob("*.weir.yaml"))
            if p.name.split(".")[0] not in NETWORKS]


SMALLER = {"lstm_lm.weir.yaml": ["-p", "batch=2"]}
