#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the assembler file that puts machine code for GPUs into a library, and
its table, weir_cuda_fatbins (runtime/device/cuda/body.h).

  embed.py OUT.S FILE.fatbin...
"""
import os
import sys

out, *files = sys.argv[1:]
lines = ["  .section .rodata"]
for n, path in enumerate(files):
    name = os.path.basename(path).removesuffix(".fatbin")
    lines += ["  .balign 64", f"code_{n}:",
              f'  .incbin "{os.path.abspath(path)}"',
              f"name_{n}:", f'  .asciz "{name}"']
lines += ['  .section .data.rel.ro, "aw", %progbits', "  .balign 8",
          "  .global weir_cuda_fatbins", "  .hidden weir_cuda_fatbins",
          "  .type weir_cuda_fatbins, %object", "weir_cuda_fatbins:"]
lines += [f"  .quad name_{n}, code_{n}" for n in range(len(files))]
lines += ["  .quad 0, 0", "  .size weir_cuda_fatbins, . - weir_cuda_fatbins",
          '  .section .note.GNU-stack, "", %progbits']
with open(out, "w", encoding="utf-8") as f:
    f.write("\n".join(lines) + "\n")
