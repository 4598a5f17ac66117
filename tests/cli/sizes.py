# SPDX-License-Identifier: Apache-2.0
"""Params of graphs whose outputs tests print: whole, the 7 million numbers of
lstm_lm are 100 MB of text."""
SMALLER = {"lstm_lm.weir.yaml": ["-p", "batch=2"]}
