# SPDX-License-Identifier: Apache-2.0
"""Reads the YAML that graph files use, for tests that have no library: block and
flow collections, quotes, anchors, `<<`; no texts over several lines."""
import re

TOKEN = re.compile(r"""\s*([\[\]{},]|"(?:\\.|[^"\\])*"|'(?:''|[^'])*')""")


def scalar(text):
    text = text.strip()
    if text[:1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text[:1] == "'":
        return text[1:-1].replace("''", "'")
    if text in ("true", "false"):
        return text == "true"
    if text in ("null", "~", ""):
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


class Reader:
    def __init__(self, text):
        self.anchors = {}
        self.lines = []
        for line in text.splitlines():
            code = re.sub(r"(^|\s)#.*", "", line).rstrip()
            if code:
                self.lines.append((len(code) - len(code.lstrip()),
                                   code.lstrip()))
        self.at = 0

    def block(self, indent):
        """The collection at column |indent|."""
        is_list = self.lines[self.at][1].startswith("- ")
        out = [] if is_list else {}
        while self.at < len(self.lines) and self.lines[self.at][0] == indent:
            code = self.lines[self.at][1]
            if is_list != code.startswith("- "):
                break
            if is_list:
                rest = code[2:].lstrip()
                if re.match(r"[\w.]+:( |$)", rest):
                    column = indent + len(code) - len(rest)
                    self.lines[self.at] = (column, rest)
                    out.append(self.block(column))
                else:
                    self.at += 1
                    out.append(self.value(rest, indent))
                continue
            m = re.match(r"""("[^"]*"|'[^']*'|[^:\s]+(?:[^:]|:(?! |$))*?)\s*:(?: +|$)(.*)""", code)
            self.at += 1
            self.put(out, scalar(m.group(1)), self.value(m.group(2), indent))
        return out

    @staticmethod
    def put(out, key, value):
        if key == "<<":
            for k, v in value.items():
                out.setdefault(k, v)
        else:
            out[str(key)] = value

    def value(self, text, indent):
        m = re.match(r"&(\w+)\s*(.*)", text)
        if m:
            out = self.anchors[m.group(1)] = self.value(m.group(2), indent)
            return out
        if not text:
            if self.at < len(self.lines) and (
                    self.lines[self.at][0] > indent or
                    self.lines[self.at][0] == indent and
                    self.lines[self.at][1].startswith("- ")):
                return self.block(self.lines[self.at][0])
            return None
        if text[0] == "*":
            return self.anchors[text[1:]]
        if text[0] in "[{":
            while not self.closes(text):
                text += " " + self.lines[self.at][1]
                self.at += 1
            return self.flow(text, 0)[0]
        return scalar(text)

    @staticmethod
    def closes(text):
        bare = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\'\'|[^\'])*\'', "", text)
        return sum(bare.count(c) for c in "[{") == \
            sum(bare.count(c) for c in "]}")

    def flow(self, text, i):
        """The flow value at |i|, and the place behind it."""
        while text[i] == " ":
            i += 1
        if text[i] in "[{":
            is_map, out = text[i] == "{", {} if text[i] == "{" else []
            i += 1
            while True:
                while text[i] in " ,":
                    i += 1
                if text[i] in "]}":
                    return out, i + 1
                value, i = self.flow(text, i)
                while text[i] == " ":
                    i += 1
                if is_map:
                    item = None
                    if text[i] == ":":
                        item, i = self.flow(text, i + 1)
                    self.put(out, value, item)
                else:
                    out.append(value)
        if text[i] in "\"'":
            m = TOKEN.match(text, i)
            return scalar(m.group(1)), m.end()
        m = re.compile(r"(?:[^,\[\]{}:]|:(?![ ,\]}]))*").match(text, i)
        name = m.group(0).strip()
        return (self.anchors[name[1:]] if name[:1] == "*" else
                scalar(name)), m.end()


def read(text):
    reader = Reader(text)
    return reader.block(0)
