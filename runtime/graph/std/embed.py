# SPDX-License-Identifier: Apache-2.0
"""Writes a C file that holds the given YAML files: embed.py OUT NAME FILE ..."""
import sys

out, pairs = sys.argv[1], sys.argv[2:]
with open(out, 'w') as c:
    c.write('#include "runtime/graph/std/embedded.h"\n')
    names = []
    for i in range(0, len(pairs), 2):
        data = open(pairs[i + 1], 'rb').read()
        c.write('static const unsigned char kText%d[] = {%s};\n' %
                (i // 2, ','.join(str(b) for b in data)))
        names.append('{"%s", kText%d, %d}' % (pairs[i], i // 2, len(data)))
    c.write('const weir_embedded weir_embedded_std[] = {%s, {0, 0, 0}};\n' %
            ', '.join(names))
