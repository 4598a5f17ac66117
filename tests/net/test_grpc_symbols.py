#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A module imports no symbol of weir's and exports one, weir_module.

  test_grpc_symbols.py MODULE.so
"""
import subprocess
import sys


def names(*options):
    out = subprocess.run(["nm", "-D", *options, sys.argv[1]], text=True,
                         capture_output=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


needs, gives = names("-u"), names("--defined-only")
if not any(name.startswith("grpc_") for name in needs):
    sys.exit(f"it needs no gRPC: {sorted(needs)}")
ours = sorted(name for name in needs if name.startswith("weir"))
if ours:
    sys.exit(f"it imports {ours}")
# The address sanitizer names each global once more.
ours = sorted(name for name in gives if "weir" in name and "__odr_asan" not in name)
if ours != ["weir_module"]:
    sys.exit(f"it exports {ours}")
