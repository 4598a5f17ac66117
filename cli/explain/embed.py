# SPDX-License-Identifier: Apache-2.0
"""Writes a C table of the examples: embed.py OUT ERRORS.DEF FILE..."""
import json
import re
import sys

out, errors, files = sys.argv[1], sys.argv[2], sys.argv[3:]
ENTRY = re.compile(r"^= (W\d{4})( not run)?\n= wrong\n(.*?)^= right\n(.*?)(?=^= W|\Z)",
                   re.M | re.S)


def literal(text):
    """A C string; JSON's escapes of ASCII are C's too."""
    return "\n    ".join(json.dumps(line) for line in text.splitlines(True))


rows = {}
for name in files:
    for id_, _, wrong, right in ENTRY.findall(open(name).read()):
        if id_ in rows:
            sys.exit(f"{name}: {id_} has two examples")
        rows[id_] = (wrong, right)
ids = re.findall(r"^WEIR_ERROR\((W\d{4})", open(errors).read(), re.M)
for id_ in ids:
    if id_ not in rows:
        sys.exit(f"{id_} has no example in cli/explain/")
for id_ in rows:
    if id_ not in ids:
        sys.exit(f"{id_} has an example, but is not in {errors}")
with open(out, "w") as c:
    c.write('#include "cli/examples.h"\n\n'
            "const cli_example cli_examples[] = {\n")
    for id_ in ids:
        wrong, right = rows[id_]
        c.write(f'  {{"{id_}",\n    {literal(wrong)},\n    {literal(right)}}},\n')
    c.write("  {0, 0, 0}};\n")
