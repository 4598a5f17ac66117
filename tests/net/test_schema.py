#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The schema of messages: nothing contains itself, numbers are frozen.

  test_schema.py [--write]

Reads task.proto, of tasks, and predict.proto, of clients, in
runtime/net/proto/weir/v1. protobuf-c unpacks by recursion without a bound, so no
message may contain itself, directly or through others. A field that was once in
task.fields or predict.fields keeps its number and type for ever; --write adds
new ones to that list.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROTOS = os.path.join(HERE, "../../runtime/net/proto/weir/v1")
SCALARS = {"bool", "bytes", "double", "fixed32", "fixed64", "float", "int32",
           "int64", "sfixed32", "sfixed64", "sint32", "sint64", "string",
           "uint32", "uint64"}
DEPTH = 7  # of messages within a Control; runtime/net/wire_check.c has room


def parse(text):
    """({message: {number: (label, type, name)}}, {enum: {number: name}})"""
    text = re.sub(r"//[^\n]*", "", text)
    messages, enums, here = {}, {}, None
    for word, name in re.findall(r"\b(message|enum|oneof)\s+(\w+)\s*\{", text):
        if word == "message":
            messages[name] = {}
        elif word == "enum":
            enums[name] = {}
    for m in re.finditer(r"\b(message|enum)\s+(\w+)\s*\{|"
                         r"(repeated\s+)?([\w.]+)\s+(\w+)\s*=\s*(\d+)\s*;|"
                         r"^\s*(\w+)\s*=\s*(\d+)\s*;", text, re.M):
        kind, name, label, type_, field, number, value, at = m.groups()
        if kind:
            here = messages[name] if kind == "message" else enums[name]
        elif field:
            assert int(number) not in here, f"{field}: {number} stands twice"
            here[int(number)] = ((label or "").strip(), type_, field)
        else:
            assert int(at) not in here, f"{value}: {at} stands twice"
            here[int(at)] = value
    return messages, enums


def depth_of(messages, name, above=()):
    """The longest chain of messages from |name|; fails when it comes back."""
    assert name not in above, "contains itself: " + " > ".join(above + (name,))
    inner = [t for _, t, _ in messages[name].values() if t in messages]
    return 1 + max((depth_of(messages, t, above + (name,)) for t in inner),
                   default=0)


def listed(messages, enums):
    lines = []
    for name, fields in messages.items():
        for number, (label, type_, field) in sorted(fields.items()):
            lines.append(" ".join(filter(None, (
                f"{name}.{number}", label, type_, field))))
    for name, values in enums.items():
        lines += [f"{name}.{n} {v}" for n, v in sorted(values.items())]
    return lines


def self_check():
    """The reader finds what it must refuse."""
    bad = "message A { B b = 1; } message B { repeated C c = 2; }" \
          "message C { A a = 1; }"
    messages, _ = parse(bad)
    try:
        depth_of(messages, "A")
    except AssertionError as e:
        assert "A > B > C > A" in str(e), e
    else:
        raise AssertionError("a circle was not found")


def check(name, counts):
    """One file; |counts| of its messages and enums, the least and the exact."""
    with open(os.path.join(PROTOS, name + ".proto"), encoding="utf-8") as f:
        text = f.read()
    messages, enums = parse(text)
    assert len(messages) >= counts[0] and len(enums) == counts[1], (
        messages, enums)
    assert not re.search(r"\boptional\b(?![`;=]| =)",
                         re.sub(r"//[^\n]*", "", text))
    for message, fields in messages.items():
        assert depth_of(messages, message) <= DEPTH
        for _, type_, field in fields.values():
            assert type_ in SCALARS or type_ in messages or type_ in enums, \
                f"{message}.{field}: {type_} is no type"
    now = listed(messages, enums)
    path = os.path.join(HERE, name + ".fields")
    frozen = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            frozen = f.read().split("\n")[:-1]
    gone = [line for line in frozen if line not in now]
    assert not gone, "changed or gone: " + ", ".join(gone)
    new = [line for line in now if line not in frozen]
    if "--write" in sys.argv[1:]:
        with open(path, "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in now))
    else:
        assert not new, f"not in {name}.fields yet: " + ", ".join(new)
    print(f"{name}: {len(messages)} messages, {len(now)} fields and values")


self_check()
check("task", (33, 3))
check("predict", (6, 1))
