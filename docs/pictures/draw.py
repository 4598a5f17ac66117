# SPDX-License-Identifier: Apache-2.0
"""The drawings of docs/ as SVG: plans from `weir place --json`, curves of a run
from the csv file of its summaries."""
import csv
import io

STYLE = """<style>
  text { font: 13px system-ui, "Liberation Sans", Arial, sans-serif; fill: #1d2430; }
  .s { font-size: 12px; fill: #5d6675; } .w { fill: #fff; text-anchor: middle; }
  .h { font-weight: 600; } .m { text-anchor: middle; } .e { text-anchor: end; }
  .bg { fill: #fbfbfa; } .lane { fill: #eef1f5; } .line { stroke: #8a93a3; fill: none; }
  .d0 { fill: #3874cb; } .d1 { fill: #c26a00; } .k { fill: #d3322f; }
  .cut { stroke: #d3322f; stroke-width: 2.5; fill: none; }
  .gl { stroke: #2a8a57; stroke-width: 2; stroke-dasharray: 5 4; }
  .c0 { stroke: #3874cb; stroke-width: 1.5; fill: none; } .c1 { stroke: #c26a00; stroke-width: 1.5; fill: none; }
  .mem { fill: #c26a00; opacity: .45; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e7eaf0; } .s { fill: #a0a9b8; } .w { fill: #fff; } .bg { fill: #14171c; }
    .lane { fill: #242932; } .line { stroke: #7b8494; } .cut { stroke: #ff6f66; }
    .k { fill: #d9463d; } .gl { stroke: #5ccf98; }
  }
</style>"""


class Svg:
    """Lines of an SVG file, with a time axis from |left|, |scale| wide a unit."""

    def __init__(self, title, width, height, left, scale):
        self.left, self.scale = left, scale
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} '
            f'{height}" width="{width}" height="{height}" role="img">'
            f"<title>{title}</title>",
            "<!-- SPDX-License-Identifier: Apache-2.0 -->", STYLE,
            f'<rect class="bg" width="{width}" height="{height}" rx="8"/>']

    def x(self, time):
        return round(self.left + self.scale * time, 1)

    def text(self, cls, x, y, text):
        self.lines.append(f'<text class="{cls}" x="{x:g}" y="{y:g}">{text}</text>')

    def rect(self, cls, x, y, width, height, radius=3):
        self.lines.append(f'<rect class="{cls}" x="{x:g}" y="{y:g}" '
                          f'width="{width:g}" height="{height:g}" rx="{radius}"/>')

    def path(self, cls, d):
        self.lines.append(f'<path class="{cls}" d="{d}"/>')

    def box(self, cls, begin, end, y, height, text):
        """A bar from time |begin| to |end|."""
        x, right = self.x(begin), self.x(end)
        self.rect(cls, x, y, right - x - 1, height)
        self.text("w", (x + right) / 2, y + height / 2 + 4.5, text)

    def lane(self, y, height, end):
        self.rect("lane", self.left, y, self.scale * end, height, 0)

    def axis(self, y, end, step):
        self.path("line", f"M{self.left} {y} H{self.x(end):g}")
        for t in range(0, int(end) + 1, step):
            self.path("line", f"M{self.x(t):g} {y - 3} v6")
            self.text("m s", self.x(t), y + 18, str(t))

    def write(self):
        return "\n".join(self.lines + ["</svg>", ""])


def heading(svg, x, title, text, y=28):
    svg.text("h", x, y, title)
    svg.text("s", x, y + 18, text)


def layers(plan):
    """Nodes by the length of the longest way to them."""
    depth = {}
    for n in plan["nodes"]:
        depth[n["id"]] = 1 + max((depth[i] for i in n.get("inputs", [])),
                                 default=-1)
    rows = {}
    for n in plan["nodes"]:
        rows.setdefault(depth[n["id"]], []).append(n)
    return [rows[k] for k in sorted(rows)]


def draw_graph(svg, plan, device):
    at = {}
    for i, row in enumerate(layers(plan)):
        for j, n in enumerate(row):
            x = 95 + 100 * (j - (len(row) - 1) / 2)
            if len(row) == 1 and len(n.get("inputs", [])) == 1:
                x = at[n["inputs"][0]][0]  # below what it continues
            at[n["id"]] = (x, 66 + 60 * i)
    for n in plan["nodes"]:
        for i in n.get("inputs", []):
            (x, y), (u, v) = at[i], at[n["id"]]
            crosses = device[i] != device[n["id"]]
            mid = (y + v) / 2
            svg.path("cut" if crosses else "line",
                     f"M{x:g} {y + 28} C{x:g} {mid:g} {u:g} {mid:g} {u:g} {v}")
    for n in plan["nodes"]:
        x, y = at[n["id"]]
        svg.rect(f"d{device[n['id']]}", x - 24, y, 48, 28)
        svg.text("w", x, y + 18.5, n["name"])


def memory_of(plan, device, at):
    """Bytes held on |device| from time to time: (begin, end, bytes)."""
    held = []  # (begin, end, bytes)
    ends = {n["id"]: n["end_ns"] for n in plan["nodes"]}
    starts = {n["id"]: n["start_ns"] for n in plan["nodes"]}
    for i, t in enumerate(plan["tensors"]):
        uses = [n["id"] for n in plan["nodes"] if t["node"] in n.get("inputs", [])]
        last = [ends[u] for u in uses if device[u] == at]
        if device[t["node"]] == at:
            last += [e["end_ns"] for e in plan["edges"] if e["tensor"] == i]
            held.append((starts[t["node"]], max(last), t.get("memory_bytes", t["bytes"])))
        elif last:
            begin = min(e["start_ns"] for e in plan["edges"] if e["tensor"] == i)
            held.append((begin, max(last), t.get("memory_bytes", t["bytes"])))
    always = sum(n.get("resident_bytes", 0) for n in plan["nodes"]
                 if device[n["id"]] == at)
    always += sum(c["bytes"] for c in plan.get("constants", [])
                  if any(device[n] == at for n in c["readers"]))
    times = sorted({0, plan["makespan_ns"], *(t for h in held for t in h[:2])})
    return [(a, b, always + sum(h[2] for h in held if h[0] <= a < h[1]))
            for a, b in zip(times, times[1:])]


def model(plan):
    """The graph on the left, its plan on the right."""
    ms = 1e6
    end = plan["makespan_ns"] / ms
    names = [d["name"] for d in plan["devices"]]
    device = {n["id"]: names.index(n["device"]) for n in plan["nodes"]}
    svg = Svg("The model: units on devices, copies on links, memory", 760, 296,
              300, 440 / end)
    heading(svg, 20, "The graph", "units, and the tensors between them")
    draw_graph(svg, plan, device)
    heading(svg, 300, "The plan", "what runs where and when; red: copies of "
            "tensors that cross devices")
    y = 70
    for d in range(len(names)):
        svg.text("e s", 290, y + 18, f"device {d}")
        svg.lane(y, 28, end)
        for n in plan["nodes"]:
            if device[n["id"]] == d:
                svg.box(f"d{d}", n["start_ns"] / ms, n["end_ns"] / ms, y, 28,
                        n["name"])
        y += 36
    for a, b in sorted({(e["from"], e["to"]) for e in plan["edges"]}):
        svg.text("e s", 290, y + 18,
                 f"link {names.index(a)} to {names.index(b)}")
        svg.lane(y, 28, end)
        for e in plan["edges"]:
            if (e["from"], e["to"]) == (a, b):
                name = plan["nodes"][e["node"]]["name"]
                svg.box("k", e["start_ns"] / ms, e["end_ns"] / ms, y, 28, name)
        y += 36
    peak = plan["devices"][1]["peak_bytes"]
    svg.text("e s", 290, y + 40, "memory of")
    svg.text("e s", 290, y + 56, f"device 1, at most {peak / 1e6:.0f} MB")
    svg.lane(y + 10, 52, end)
    for begin, until, size in memory_of(plan, device, 1):
        h = round(48 * size / peak, 1)
        svg.rect("mem", svg.x(begin / ms), y + 62 - h,
                 svg.scale * (until - begin) / ms, h, 0)
    svg.axis(y + 74, end, 2)
    svg.text("e s", 290, y + 92, "time, ms")
    return svg.write()


BOUNDS = [("critical_path_ns", "critical path", "the longest way"),
          ("area_ns", "area", "all work spread over all devices"),
          ("window_ns", "window", "work between what must come before and after"),
          ("energy_ns", "energy", "shorter steps that are refuted one by one")]


def bounds(plan):
    """Each bound as a line, and a plan that meets the largest."""
    end = plan["makespan_ns"]
    names = [d["name"] for d in plan["devices"]]
    svg = Svg("Lower bounds of five units on two devices", 760, 330, 330,
              400 / end)
    heading(svg, 20, "Five units on two devices", "a (2) comes before b, c and "
            "d (3 each), and those before e (2); copies are free here")
    y = 70
    for key, name, text in BOUNDS:
        svg.text("h", 20, y + 16, name)
        svg.text("s", 20, y + 31, text)
        svg.lane(y + 6, 16, end)
        x = svg.x(plan["bounds"][key])
        svg.path("gl", f"M{x:g} {y} v28")
        svg.text("h e", x - 8, y + 18, str(plan["bounds"][key]))
        y += 42
    svg.text("h", 20, y + 16, "the plan")
    svg.text("s", 20, y + 31, "its step is the largest bound: it is optimal"
             if end == plan["lower_bound_ns"] else "the best that was found")
    for n in plan["nodes"]:
        d = names.index(n["device"])
        if n["end_ns"] > n["start_ns"]:
            svg.box(f"d{d}", n["start_ns"], n["end_ns"], y + 27 * d, 24,
                    "abcde"[int(n["name"].lstrip("t")) - 1])
    svg.axis(y + 58, end, 2)
    return svg.write()


def curves(text):
    """Loss and accuracy by step; a ring for what an evaluation gave."""
    rows = list(csv.DictReader(io.StringIO(text)))
    steps = int(rows[-1]["step"])
    svg = Svg("Loss and accuracy of LeNet on Fashion-MNIST", 760, 300, 60,
              660 / steps)
    heading(svg, 20, "LeNet on Fashion-MNIST, three epochs", "line: a batch of "
            "64 every 50 steps; ring: all 10,000 test images")
    svg.rect("lane", 60, 70, 660, 180, 0)
    for i in range(6):
        svg.text("e s", 52, 254 - 36 * i, f"{0.2 * i:.1f}")
        svg.path("line", f"M60 {250 - 36 * i} h660")
    for cls, name, x in (("c0", "loss", 560), ("c1", "acc", 640)):
        points = [(svg.x(int(r["step"])), 250 - 180 * min(1, float(r[name])))
                  for r in rows if r[name]]
        svg.path(cls, "M" + " L".join(f"{x:g} {y:.1f}" for x, y in points))
        for r in rows:
            if r["eval/" + name]:
                svg.lines.append(
                    f'<circle class="{cls}" cx="{svg.x(int(r["step"])):g}" cy="'
                    f'{250 - 180 * float(r["eval/" + name]):.1f}" r="5"/>')
        svg.path(cls, f"M{x} 34 h24")
        svg.text("s", x + 30, 38, name)
    svg.axis(250, steps, 500)
    return svg.write()
