#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir schema: the project's graphs fit it, an unknown key in any section does
not. The checker knows the words of JSON Schema that the schema uses and fails at
any other; the library jsonschema is asked too where it is installed.

  test_schema.py WEIR SOURCE_ROOT [TEST...]
"""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import small_yaml

try:
    import jsonschema
except ImportError:
    jsonschema = None

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
SCHEMA = json.loads(subprocess.run([WEIR, "schema"], check=True,
                                   capture_output=True).stdout)
GRAPHS = sorted((ROOT / "graphs").glob("*.yaml"))
PYTHON = {"object": dict, "array": list, "string": str, "boolean": bool,
          "null": type(None)}
WORDS = {"$schema", "$ref", "$defs", "title", "description", "type", "enum",
         "const", "pattern", "anyOf", "required", "properties", "items",
         "patternProperties", "additionalProperties"}


def is_type(value, name):
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if name in ("number", "integer"):
        return number and (name == "number" or value == int(value))
    return isinstance(value, PYTHON[name])


def check_map(value, schema, at):
    for key in schema.get("required", ()):
        if key not in value:
            yield f"{at}: {key} is missing"
    for key, item in value.items():
        subs = [s for p, s in schema.get("patternProperties", {}).items()
                if re.search(p, key)]
        if key in schema.get("properties", {}):
            subs.append(schema["properties"][key])
        rest = schema.get("additionalProperties", {})
        if not subs and rest is False:
            yield f"{at}: unknown key {key}"
        for sub in subs or [rest or {}]:
            yield from errors(item, sub, f"{at}.{key}")


def errors(value, schema, at="graph"):
    unknown = set(schema) - WORDS
    if unknown:
        yield f"{at}: the checker does not know {unknown}"
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        yield from errors(value, SCHEMA["$defs"][name], at)
    types = schema.get("type", ())
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, t) for t in types):
        yield f"{at}: {value!r} is none of {types}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is not listed"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']}"
    if "pattern" in schema and isinstance(value, str) and \
            not re.search(schema["pattern"], value):
        yield f"{at}: {value!r} does not fit {schema['pattern']}"
    if "anyOf" in schema:
        found = [list(errors(value, s, at)) for s in schema["anyOf"]]
        if all(found):
            yield found[-1][0]
    if isinstance(value, dict):
        yield from check_map(value, schema, at)
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from errors(item, schema["items"], f"{at}[{i}]")


FULL = {
    "weir": 1, "nodes": {"y": {"op": "relu", "in": ["x"]},
                         "s": {"scan": {"over": {"a": "x"}}},
                         "w": {"while": {"carry": {}}},
                         "i": {"if": {"cond": "p"}},
                         "r": {"repeat": {"i": "0..2"}, "nodes": {}}},
    "blocks": {"f": {"in": ["a"], "out": "a"}},
    "cluster": {"worker": {"tasks": 2}},
    "placement": [{"match": "*"}], "mesh": {"axes": {"row": 2}},
    "data": {"train": {"source": "csv", "files": "x.csv",
                       "window": {"length": 3}, "shuffle": {"seed": 1},
                       "columns": {"x": {"dtype": "f32"}}}},
    "train": {"minimize": "loss", "stop": {"time": "3s"},
              "eval": {"data": "test"}, "checkpoint": {"keep": 3},
              "summary": {"every": 5}}}
MAPS = [(), ("nodes", "y"), ("nodes", "s"), ("nodes", "s", "scan"),
        ("nodes", "w", "while"), ("nodes", "i", "if"), ("nodes", "r"),
        ("blocks", "f"), ("cluster", "worker"), ("placement", 0), ("mesh",),
        ("data", "train"), ("data", "train", "window"),
        ("data", "train", "shuffle"), ("data", "train", "columns", "x"),
        ("train",), ("train", "stop"), ("train", "eval"),
        ("train", "checkpoint"), ("train", "summary")]


class Schema(unittest.TestCase):
    def fits(self, graph, wanted, what):
        found = list(errors(graph, SCHEMA))
        self.assertEqual(not found, wanted, f"{what}: {found}")
        if jsonschema is not None:
            valid = jsonschema.Draft202012Validator(SCHEMA).is_valid(graph)
            self.assertEqual(valid, wanted, what)

    def test_own_graphs(self):
        for path in GRAPHS:
            graph = small_yaml.read(path.read_text())
            self.assertEqual(graph["weir"], 1)
            self.fits(graph, True, path)

    def test_unknown_keys(self):
        self.fits(FULL, True, "the graph without unknown keys")
        for way in MAPS:
            graph = copy.deepcopy(FULL)
            place = graph
            for step in way:
                place = place[step]
            place["zzz"] = 1
            self.fits(graph, False, way)

    def test_values(self):
        for way, value in ((("weir",), 2), (("nodes", "y", "op"), "1x"),
                           (("train", "stop"), 3), (("placement",), {}),
                           (("data", "train", "source"), "cvs"),
                           (("train", "checkpoint", "keep"), [1])):
            graph = copy.deepcopy(FULL)
            place = graph
            for step in way[:-1]:
                place = place[step]
            place[way[-1]] = value
            self.fits(graph, False, way)

    def test_knows_all_ops(self):
        ops = [l.split()[0] for l in subprocess.run(
            [WEIR, "show", "ops"], capture_output=True,
            text=True).stdout.splitlines()]
        self.assertEqual(SCHEMA["$defs"]["op"]["anyOf"][0]["enum"], ops)

    def test_is_a_schema(self):
        if jsonschema is not None:
            jsonschema.Draft202012Validator.check_schema(SCHEMA)
        self.assertEqual(SCHEMA["$schema"],
                         "https://json-schema.org/draft/2020-12/schema")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
