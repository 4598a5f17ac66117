# SPDX-License-Identifier: Apache-2.0
"""A table that an enum indexes names each value, and is as long as the enum.

Names identify an index of an enum: a variable of the file that is declared with
an enum's type, or a member that is of an enum's type wherever the tree declares
one of that name.
"""
import re

from tree import bare, read, report, room_of, tracked

ENUM = re.compile(r"typedef\s+enum\s+\w+\s*\{[^}]*\}\s*(\w+)\s*;")
DECLARED = re.compile(r"\b([A-Za-z_]\w*)\s+(\w+)\s*(?=[;,)=:])")
TABLE = re.compile(r"^[ \t]*(?:static )?const [\w \t*]*?\b(\w+)"
                   r"\[[^\]]*\]\s*=\s*\{\s*(\S)", re.M)


def sources():
    return [p for p in tracked(".c", ".h") if room_of(p) is not None]


def enum_names(texts):
    """Types that are enums; members and arguments that always are of one."""
    types = {m for t in texts.values() for m in ENUM.findall(t)}
    of_enum, of_other = set(), set()
    for path, text in texts.items():
        for kind, name in DECLARED.findall(text):
            if kind not in ("return", "else", "typedef", "struct", "enum"):
                (of_enum if kind in types else of_other).add(name)
    return types, of_enum - of_other


def enum_index(text, index, types, members):
    """Whether |index| is a variable or member of an enum's type."""
    m = re.fullmatch(r"\s*(?:[\w>.-]*(?:->|\.))(\w+)\s*", index)
    if m:
        return m.group(1) in members
    name = index.strip()
    return re.fullmatch(r"[A-Za-z_]\w*", name) and any(
        kind in types for kind, n in DECLARED.findall(text) if n == name)


def check_tables():
    texts = {path: bare(read(path)) for path in sources()}
    types, members = enum_names(texts)
    for path, text in texts.items():
        for m in TABLE.finditer(text):
            name, first = m.groups()
            uses = re.findall(r"(?<![\w.>])" + name + r"\[([^\[\]]+)\]", text)
            if not any(enum_index(text, u, types, members) for u in uses):
                continue
            line = text.count("\n", 0, m.start(1)) + 1
            if first != "[":
                report("tables", path, line, f"{name} is indexed by an enum: "
                       "write its entries as [VALUE] = ...")
            if not re.search(r"\w*TABLE_OF\(\s*" + name + r"\s*,", text):
                report("tables", path, line, f"{name} is indexed by an enum: "
                       "no TABLE_OF checks its length")
