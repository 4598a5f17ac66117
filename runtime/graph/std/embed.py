# SPDX-License-Identifier: Apache-2.0
"""Writes a C file that holds the given files: embed.py OUT SYMBOL NAME FILE ..."""
import sys

out, symbol, pairs = sys.argv[1], sys.argv[2], sys.argv[3:]
with open(out, 'w') as c:
    c.write('#include "runtime/graph/std/embedded.h"\n')
    names = []
    for i in range(0, len(pairs), 2):
        data = open(pairs[i + 1], 'rb').read()
        c.write('static const unsigned char kText%d[] = {%s};\n' %
                (i // 2, ','.join(str(b) for b in data)))
        names.append('{"%s", kText%d, %d}' % (pairs[i], i // 2, len(data)))
    c.write('extern const weir_embedded %s[];\n' % symbol)
    c.write('const weir_embedded %s[] = {%s, {0, 0, 0}};\n' %
            (symbol, ', '.join(names)))
