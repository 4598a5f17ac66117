#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The module for GPUs imports no symbol of weir's and none of CUDA's, and
exports one, weir_module.

  test_cuda_symbols.py MODULE.so
"""
import subprocess
import sys


def names(*options):
    out = subprocess.run(["nm", "-D", *options, sys.argv[1]], text=True,
                         capture_output=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


needs, gives = names("-u"), names("--defined-only")
if not any(name == "dlopen" for name in needs):
    sys.exit(f"it opens no library: {sorted(needs)}")
others = sorted(name for name in needs if name.startswith(("weir", "cu")))
if others:
    sys.exit(f"it imports {others}")
# The address sanitizer names each global once more.
ours = sorted(name for name in gives if "weir" in name and "__odr_asan" not in name)
if ours != ["weir_module"]:
    sys.exit(f"it exports {ours}")
