# SPDX-License-Identifier: Apache-2.0
"""Writes a C table of the services: describe.py OUT DESCRIPTOR_SET

Of each file its descriptor, as it goes to clients that ask by reflection, and
of each symbol in it the file. The set is of protoc-c --descriptor_set_out.
"""
import sys


def fields(data):
    """(number, value) of each field of a message; bytes, or an integer."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        value = varint()
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        elif key & 7 != 0:
            sys.exit("describe.py: a field of a type that descriptors lack")
        yield key >> 3, value


def name_of(message):
    return next(v.decode() for n, v in fields(message) if n == 1)


def symbols(file):
    """(full name, whether it is a service) of all in a file."""
    package = next(v.decode() for n, v in fields(file) if n == 2)
    todo = [(package, n, v) for n, v in fields(file) if n in (4, 5, 6)]
    while todo:
        scope, kind, message = todo.pop()
        name = f"{scope}.{name_of(message)}"
        yield name, kind == 6
        if kind == 4:  # messages and enums within it
            todo += [(name, {3: 4, 4: 5}[n], v) for n, v in fields(message)
                     if n in (3, 4)]
        if kind == 6:
            yield from ((f"{name}.{name_of(v)}", False)
                        for n, v in fields(message) if n == 2)


def main(out, path):
    files = [v for n, v in fields(open(path, "rb").read()) if n == 1]
    rows = sorted((name, k, service) for k, file in enumerate(files)
                  for name, service in symbols(file))
    with open(out, "w") as c:
        c.write('#include "runtime/net/rpc/services.h"\n')
        for k, file in enumerate(files):
            c.write(f"static const uint8_t file{k}[] = {{")
            c.write(",".join(map(str, file)) + "};\n")
        c.write("const weir_rpc_file weir_rpc_files[] = {\n")
        for k, file in enumerate(files):
            c.write(f'  {{"{name_of(file)}", file{k}, sizeof file{k}}},\n')
        c.write("  {0}};\nconst weir_rpc_symbol weir_rpc_symbols[] = {\n")
        for name, k, service in rows:
            c.write(f'  {{"{name}", {k}, {str(service).lower()}}},\n')
        c.write("  {0}};\n")


main(*sys.argv[1:])
