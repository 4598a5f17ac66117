#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Objects of an archive that need something and reach no system: no socket, clock, thread, file.

  no_system.py ARCHIVE OBJECT...    an object by its source: runtime/net/sim.c

All that they need beside weir's own functions is in HARMLESS.
"""
import subprocess
import sys

HARMLESS = {"memcpy", "memmove", "memset", "memcmp", "bcmp", "strcmp", "strncmp", "strlen",
            "snprintf",
            "__snprintf_chk", "__memcpy_chk", "__assert_fail",
            "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_", "protobuf_c_empty_string"}


def main(archive, *sources):
    out = subprocess.run(["nm", "-A", "-u", archive], capture_output=True,
                         text=True, check=True).stdout
    seen, bad = set(), []
    for line in out.splitlines():
        place, name = line.rsplit(":", 1)[0], line.split()[-1]
        for source in sources:
            if source.replace("/", "_") + ".o" not in place:
                continue
            seen.add(source)
            if not name.startswith("weir_") and name not in HARMLESS:
                bad.append(f"{source} needs {name}")
    bad += [f"no object of {s}" for s in sources if s not in seen]
    print("\n".join(bad) or f"{len(seen)} objects")
    return 1 if bad else 0


sys.exit(main(*sys.argv[1:]))
