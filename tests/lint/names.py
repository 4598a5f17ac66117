# SPDX-License-Identifier: Apache-2.0
"""Names in comments and pages exist: files, functions, options.

A page is README.md, CONTRIBUTING.md, docs/*.md and each room's README.md. A
name with a blank to fill in (<op>.c, weir_kernel_*, weir_rule_<op>) is taken as
a pattern that something must match.
"""
import os
import re

from tree import bare, comments, read, report, room_of, tracked

CODE = (".c", ".h", ".cu", ".in", ".def", ".map", ".build", ".py", ".sh")
# Files of others that pages and comments name.
FOREIGN_FILES = {
    "dlpack/dlpack.h",  # DLPack
    "core/lib/io/record_writer.h",  # TensorFlow
}
# Texts that look like a file's name: value h of the node `run`.
NO_FILES = {"run.h"}
# Options of other tools.
FOREIGN_OPTIONS = {"--logdir"}  # tensorboard

FILE = re.compile(r"(?<![\w./<>*{}$~@%-])((?:[\w.-]+/)*[\w-]+\.(?:c|h|py|md))"
                  r"(?![\w/*<]|\.\w|-\w)")
FUNCTION = re.compile(r"(?<![\w/.-])(weir_\w+(?:\*|<\w+>\w*)?)(?![\w./-]*\.\w)")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?![\w-])")
# Rows of the command's tables of options (cli/table.h).
ROW = re.compile(r'\b[A-Z]+\(\s*"([a-z][a-z0-9-]*)"')


def texts():
    """(path, text) of all checked text: comments of sources, pages."""
    for path in tracked(".c", ".h", ".cu"):
        if room_of(path) is not None or path.startswith("tests/"):
            yield path, comments(read(path))
    for path in tracked(".md"):
        if path != "CHANGELOG.md":
            yield path, read(path)


def finds(pattern, text):
    for m in pattern.finditer(text):
        yield m.group(1), m.start()


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def file_exists(name, path, files, ends):
    if name in FOREIGN_FILES or name in NO_FILES or "NAME" in name:
        return True
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
    return beside in files or "/" + name in ends


def check_files(path, text, files, ends):
    for name, at in finds(FILE, text):
        if not file_exists(name, path, files, ends):
            report("names", path, line_of(text, at), f"there is no file {name}")


def check_words(path, text, words):
    for name, at in finds(FUNCTION, text):
        stem = re.split(r"[*<]", name)[0]
        ok = name in words if stem == name and not name.endswith("_") else \
            any(w.startswith(stem) for w in words)
        if not ok:
            report("names", path, line_of(text, at), f"there is no {name}")


def check_options(path, text, options):
    for name, at in finds(OPTION, text):
        if name not in options and name not in FOREIGN_OPTIONS:
            report("names", path, line_of(text, at), f"there is no option {name}")


def endings(files):
    """Each file's path and all ends of it that begin at a folder."""
    ends = set()
    for path in files:
        parts = path.split("/")
        ends |= {"/" + "/".join(parts[i:]) for i in range(len(parts))}
    return ends


def known_words():
    """weir_* names in code, those that macros and meson build among them."""
    words = set()
    for path in tracked(*CODE):
        text = read(path)
        if path.endswith((".c", ".h", ".cu")):
            text = bare(text)
        words |= set(re.findall(r"\bweir_\w+", text))
    return words


def known_options():
    """Options of the command and of the scripts: rows of tables, and
    strings in code."""
    options = set()
    for path in tracked(".c", ".h", ".py", ".sh", ".build") + \
            tracked("tools/test"):
        text = read(path)
        if path.endswith((".c", ".h")):
            note = comments(text)
            text = "".join(c if n == " " else " " for c, n in zip(text, note))
        options |= set(OPTION.findall(text))
        options |= {"--" + n for n in ROW.findall(text)}
    return options


def check_names():
    files = set(tracked(""))
    ends = endings(files)
    words, options = known_words(), known_options()
    for path, text in texts():
        check_files(path, text, files, ends)
        check_words(path, text, words)
        check_options(path, text, options)
