#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir predict --serve, asked by a stock client: grpcio, which learns the
messages from the server by reflection.

  test_serve.py WEIR SOURCE_ROOT [CASE...]

Needs the virtual environment of tools/setup --tests, or a Python with grpcio
that WEIR_PEERS_PYTHON names; else it is skipped. No verdict depends on a time
limit: those here end a test that hangs, but for deadlines of requests that
never end.
"""
import array
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

SKIP = 77


def load():
    """Whether grpcio is there, perhaps after a change to its Python."""
    try:
        import grpc_health.v1  # noqa: F401
        import grpc_reflection.v1alpha  # noqa: F401
        return True
    except ImportError:
        pass
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for other in (os.environ.get("WEIR_PEERS_PYTHON"),
                  os.path.join(cache, "weir-tests/grpcio/bin/python")):
        if other and os.path.exists(other) and "WEIR_REEXEC" not in os.environ:
            os.execve(other, [other] + sys.argv,
                      dict(os.environ, WEIR_REEXEC="1"))
    return False


if not load():
    print("skipped: no grpcio package (tools/setup --tests installs it)")
    sys.exit(SKIP)

os.environ["GRPC_VERBOSITY"] = "ERROR"
import grpc  # noqa: E402
from google.protobuf import descriptor_pool, message_factory  # noqa: E402
from grpc_health.v1 import health_pb2, health_pb2_grpc  # noqa: E402
from grpc_reflection.v1alpha import reflection_pb2  # noqa: E402
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import \
    ProtoReflectionDescriptorDatabase  # noqa: E402

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
HANG = 300  # seconds: an end for what would hang
COLUMNS, CLASSES, ROWS = 20, 5, 60
MODEL = f"""weir: 1
dims: [n]
import: {{nn: std/nn}}
inputs: {{x: "f32[n, {COLUMNS}]", label: "u8[n]"}}
nodes:
  h: nn.dense(x, units=33, act=relu)
  logits: nn.dense(h, units={CLASSES})
  best: argmax(logits, axis=-1)
  loss: mean(sparse_softmax_xent(logits, label))
outputs: [logits, best]
data:
  train: {{source: memory, batch: 2, values: {{
    x: {[[0.1 * (i + k) for i in range(COLUMNS)] for k in range(4)]},
    label: [0, 1, 2, 3]}}}}
train: {{minimize: loss, optimizer: sgd(lr=0.1), steps: 3}}
"""
SLOW = """weir: 1
inputs: {n: "i64[]"}
nodes:
  slow:
    while: {carry: {i: n}, cond: "greater(i, 0)", next: {i: "sub(i, 1)"}}
outputs: [slow]
"""
FOR_EVER = 1 << 40


def write_npy(path, descr, shape, data):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape})
    head = head.ljust(128 - 11) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                     head.encode() + data)


def read_npy(path):
    data = path.read_bytes()
    return data[10 + struct.unpack("<H", data[8:10])[0]:]


class Client:
    """Messages are built from what the server tells of them."""

    def __init__(self, address):
        self.address = address
        self.channel = grpc.insecure_channel(address)
        self.database = ProtoReflectionDescriptorDatabase(self.channel)
        self.pool = descriptor_pool.DescriptorPool(self.database)
        service = self.pool.FindServiceByName("weir.v1.Predict")
        self.calls = {}
        for m in service.methods:
            answer = message_factory.GetMessageClass(m.output_type)
            self.calls[m.name] = self.channel.unary_unary(
                f"/{service.full_name}/{m.name}",
                request_serializer=lambda r: r.SerializeToString(),
                response_deserializer=answer.FromString)
        self.types = self.pool.FindEnumTypeByName("weir.v1.DType")

    def new(self, name):
        return message_factory.GetMessageClass(
            self.pool.FindMessageTypeByName("weir.v1." + name))()

    def request(self, outputs=(), **inputs):
        """Each input: (dtype, shape, bytes)."""
        r = self.new("PredictRequest")
        for name, (dtype, shape, data) in inputs.items():
            t = r.inputs.add(name=name, data=data)
            t.dtype = self.types.values_by_name["DTYPE_" + dtype].number
            t.shape.extend(shape)
        r.outputs.extend(outputs)
        return r

    def start(self, *args, timeout=HANG, **inputs):
        return self.calls["Predict"].future(self.request(*args, **inputs),
                                            timeout=timeout)

    def health(self, service=""):
        return health_pb2_grpc.HealthStub(self.channel).Check(
            health_pb2.HealthCheckRequest(service=service), timeout=HANG)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-serve-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def weir(self, *args, code=0):
        p = subprocess.run([WEIR, *map(str, args)], cwd=ROOT, timeout=HANG,
                           env=ENV, capture_output=True, text=True)
        self.assertEqual(p.returncode, code, f"{args}: {p.stderr}")
        return p

    def graph(self, text):
        path = self.path / "g.weir.yaml"
        path.write_text(text)
        return path

    def serve(self, graph, *args, address="127.0.0.1:0"):
        """A server, and a client of it."""
        p = subprocess.Popen([WEIR, "predict", *map(str, (graph, *args)),
                              "--serve", address, "--json"], cwd=ROOT, env=ENV,
                             text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        said, m = "", None
        while m is None:
            line = p.stderr.readline()
            self.assertTrue(line, said)
            said += line
            m = re.match(r"\[serve\] listening at ([^\s,]+), (.*)$", line)
        p.how = m.group(2)
        client = Client(m.group(1))
        self.addCleanup(client.channel.close)
        return p, client

    def stop(self, p, number=signal.SIGTERM):
        """Ends a server; what it counted."""
        p.send_signal(number)
        out, err = p.communicate(timeout=HANG)
        self.assertEqual(p.returncode, 128 + number, err)
        p.said = err
        return json.loads(out)

    def refused(self, future, code, text):
        with self.assertRaises(grpc.RpcError) as caught:
            future.result()
        self.assertEqual((caught.exception.code(), caught.exception.details()),
                         (code, text))


class Model(Case):
    """A model with weights."""

    def model(self):
        """The graph, its checkpoint, ROWS rows, weir predict's outputs."""
        graph, run = self.graph(MODEL), self.path / "run"
        self.weir("train", graph, "--checkpoint", run, "-q")
        rng = random.Random(1)
        rows = array.array("f", (rng.uniform(-2, 2)
                                 for _ in range(ROWS * COLUMNS))).tobytes()
        write_npy(self.path / "x.npy", "<f4", (ROWS, COLUMNS), rows)
        self.weir("predict", graph, "--checkpoint", run, "-i",
                  f"x=@{self.path}/x.npy", "-o", f"logits=@{self.path}/l.npy",
                  "-o", f"best=@{self.path}/b.npy")
        return (graph, ("--checkpoint", run), rows,
                read_npy(self.path / "l.npy"), read_npy(self.path / "b.npy"))

    def answers_equal(self, client, rows, logits, best, counts):
        """Requests of `counts` rows each, all under way at once."""
        futures, at = [], 0
        for n in counts:
            data = rows[at * COLUMNS * 4:(at + n) * COLUMNS * 4]
            futures.append((at, n, client.start(
                x=("F32", (n, COLUMNS), data))))
            at += n
        for at, n, future in futures:
            a, b = future.result().outputs
            self.assertEqual((a.name, list(a.shape), b.name, list(b.shape)),
                             ("logits", [n, CLASSES], "best", [n]))
            self.assertEqual(
                a.data, logits[at * CLASSES * 4:(at + n) * CLASSES * 4])
            self.assertEqual(b.data, best[at * 8:(at + n) * 8])


class Stock(Model):
    """As stock clients meet it."""

    def test_reflection_health_describe(self):
        graph, args, *_ = self.model()
        p, client = self.serve(graph, *args)
        self.assertEqual(p.how, "batches of 32 rows")
        services = ["grpc.health.v1.Health",
                    "grpc.reflection.v1.ServerReflection",
                    "grpc.reflection.v1alpha.ServerReflection",
                    "weir.v1.Predict"]
        self.assertEqual(sorted(client.database.get_services()), services)
        # The second version has the first one's messages.
        v1 = client.channel.stream_stream(
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=reflection_pb2.ServerReflectionResponse
            .FromString)
        ask = reflection_pb2.ServerReflectionRequest
        a, b = v1(iter([ask(list_services="*"),
                        ask(file_containing_symbol="weir.v1.DType")]))
        self.assertEqual([s.name for s in a.list_services_response.service],
                         services)
        self.assertEqual(
            len(b.file_descriptor_response.file_descriptor_proto), 1)
        serving = health_pb2.HealthCheckResponse.SERVING
        for name in ("", "weir.v1.Predict"):
            self.assertEqual(client.health(name).status, serving)
        with self.assertRaises(grpc.RpcError) as caught:
            client.health("nothing")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
        d = client.calls["Describe"](client.new("DescribeRequest"))
        self.assertEqual([(t.name, list(t.shape)) for t in d.inputs],
                         [("x", [-1, COLUMNS])])
        self.assertEqual([t.name for t in d.outputs], ["logits", "best"])
        self.assertEqual(d.batch_rows, 32)
        self.assertEqual(self.stop(p)["answered"], 0)

    def test_answers_have_the_bits_of_predict(self):
        graph, args, rows, logits, best = self.model()
        p, client = self.serve(graph, *args, "--batch-wait", "20ms")
        self.answers_equal(client, rows, logits, best, [1] * ROWS)
        self.answers_equal(client, rows, logits, best, [32, 1, 27])
        self.answers_equal(client, rows, logits, best, [7, 2, 3, 11, 1] * 2)
        [b] = client.start(("best",), x=("F32", (2, COLUMNS), rows[:160])
                           ).result().outputs
        self.assertEqual((b.name, b.data), ("best", best[:16]))
        counts = self.stop(p, signal.SIGINT)
        self.assertEqual(counts["answered"], ROWS + 3 + 10 + 1)
        self.assertLess(counts["batches"], counts["answered"])
        self.assertEqual(counts["rows"], 3 * ROWS - 12 + 2)
        self.assertGreaterEqual(counts["p99_ns"], counts["p50_ns"])

    def test_bad_requests(self):
        graph, args, rows, *_ = self.model()
        p, client = self.serve(graph, *args)
        bad = grpc.StatusCode.INVALID_ARGUMENT
        row = rows[:COLUMNS * 4]
        for inputs, text in (
                ({}, f"W4012: input x, f32[n, {COLUMNS}], is missing"),
                ({"y": ("F32", (1, COLUMNS), row)},
                 "W4011: the graph has no input y"),
                ({"label": ("U8", (1,), b"1")},
                 "W4011: no output depends on input label: leave it out"),
                ({"x": ("F64", (1, COLUMNS), row * 2)},
                 f"W4009: input x is f32[n, {COLUMNS}], the value is "
                 f"f64[1, {COLUMNS}]"),
                ({"x": ("F32", (1, 3), row)},
                 f"W4009: input x is f32[n, {COLUMNS}], the value is "
                 "f32[1, 3]"),
                ({"x": ("F32", (33, COLUMNS), row * 33)},
                 "W4009: input x has 33 rows, a request takes 1 to 32"),
                ({"x": ("F32", (1, COLUMNS), row[1:])},
                 "W4009: input x has 79 bytes of data, its shape wants 80")):
            self.refused(client.start(**inputs), bad, text)
        self.refused(client.start(("z",), x=("F32", (1, COLUMNS), row)), bad,
                     "W4016: the graph has no output z")
        raw = client.channel.unary_unary("/weir.v1.Predict/Predict")
        self.refused(raw.future(b"\xff\xff", timeout=HANG), bad,
                     "W7075: the request cannot be read")
        raw = client.channel.unary_unary("/weir.v1.Predict/Train")
        self.refused(raw.future(b"", timeout=HANG),
                     grpc.StatusCode.UNIMPLEMENTED, "no such method")
        with self.assertRaises(grpc.RpcError) as caught:
            client.start(x=("F32", (1, COLUMNS), bytes(65 << 20))).result()
        self.assertEqual(caught.exception.code(),
                         grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.answers_equal(client, rows, *map(read_npy, (
            self.path / "l.npy", self.path / "b.npy")), [3])
        counts = self.stop(p)
        self.assertEqual((counts["wrong"], counts["answered"]), (9, 1))

    def test_example_of_the_page(self):
        page = (ROOT / "docs/serving.md").read_text()
        [code] = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
        p, client = self.serve(ROOT / "graphs/tiny_matmul.weir.yaml",
                               address="localhost:0")
        port = re.search(r":(\d+)$", client.address).group(1)
        got = subprocess.run([sys.executable, "-c",
                              code.replace(":8500", ":" + port)],
                             capture_output=True, text=True, timeout=HANG)
        self.assertIn(f"It prints `{got.stdout.strip()}`", page, got.stderr)
        self.assertEqual(self.stop(p)["answered"], 1)

    def test_options(self):
        graph, args, *_ = self.model()
        for more, code, text in (
                (("--serve", "192.0.2.1:80"), 2, "requests are not encrypted"),
                (("--serve", "nowhere"), 2, "nowhere: it has no port"),
                (("--queue", 3), 2, "--queue has no effect without --serve"),
                (("--serve", "127.0.0.1:0", "--top", 3), 2, "--top"),
                (("--serve", "127.0.0.1:0", "-i", "x=1"), 2, "--input")):
            with self.subTest(more):
                p = self.weir("predict", graph, *args, *more, code=code)
                self.assertIn(text, p.stderr)
        p, client = self.serve(graph, *args, "--batch", 1,
                               address=f"unix:{self.path}/socket")
        self.assertEqual(p.how, "each request by itself: batches of one row "
                         "are wanted")
        again = self.weir("predict", graph, *args, "--serve",
                          f"unix:{self.path}/socket", code=2)
        self.assertIn("another process listens there", again.stderr)
        self.stop(p)


class Dealt(Model):
    """Batches that are dealt to processes."""

    def test_workers(self):
        graph, args, rows, logits, best = self.model()
        p, client = self.serve(graph, *args, "--local", "worker=2",
                               "--task-threads", 1)
        self.assertEqual(p.how, "batches of 32 rows")
        self.answers_equal(client, rows, logits, best, [1] * ROWS)
        children = pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children")
        worker = int(children.read_text().split()[0])
        os.kill(worker, signal.SIGKILL)
        self.answers_equal(client, rows, logits, best, [1, 2, 3] * 10)
        self.assertEqual(self.stop(p)["answered"], ROWS + 30)
        self.assertRegex(p.said, r"worker:\d.*lost")


class Load(Case):
    """Requests that take long, or for ever."""

    def slow(self, *args):
        p, client = self.serve(self.graph(SLOW), *args)
        return p, client, lambda n, timeout=HANG: client.start(
            timeout=timeout, n=("I64", (), struct.pack("<q", n)))

    def test_deadline(self):
        p, client, start = self.slow()
        late = start(FOR_EVER, timeout=0.2)
        with self.assertRaises(grpc.RpcError) as caught:
            late.result()
        self.assertEqual(caught.exception.code(),
                         grpc.StatusCode.DEADLINE_EXCEEDED)
        [y] = start(3).result().outputs
        self.assertEqual(struct.unpack("<q", y.data), (0,))
        counts = self.stop(p)  # which waits for the run: it has ended
        self.assertEqual((counts["answered"], counts["late"]), (1, 1))

    def test_queue(self):
        p, client, start = self.slow("--queue", 1)
        futures = [start(FOR_EVER, timeout=1) for _ in range(9)]
        codes = []
        for future in futures:
            with self.assertRaises(grpc.RpcError) as caught:
                future.result()
            codes.append(caught.exception.code())
            if codes[-1] == grpc.StatusCode.RESOURCE_EXHAUSTED:
                self.assertEqual(
                    caught.exception.details(),
                    "W7077: 1 requests wait, and the queue takes 1")
        # Two run, one waits.
        self.assertGreaterEqual(
            codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED), 6)
        self.assertEqual(set(codes), {grpc.StatusCode.RESOURCE_EXHAUSTED,
                                      grpc.StatusCode.DEADLINE_EXCEEDED})
        self.assertEqual(self.stop(p)["refused"], codes.count(
            grpc.StatusCode.RESOURCE_EXHAUSTED))

    def test_stop_while_requests_run(self):
        p, client, start = self.slow()
        long = start(FOR_EVER)  # keeps it from its end
        some = [start(20000) for _ in range(3)]
        start(1).result()  # those before it have been read
        p.send_signal(signal.SIGTERM)
        while client.health().status != health_pb2.HealthCheckResponse \
                .NOT_SERVING:
            pass
        self.refused(start(1), grpc.StatusCode.UNAVAILABLE,
                     "W7078: the server stops")
        for future in some:
            [y] = future.result().outputs
            self.assertEqual(struct.unpack("<q", y.data), (0,))
        long.cancel()  # which ends its run
        out, err = p.communicate(timeout=HANG)
        self.assertEqual(p.returncode, 143, err)
        self.assertEqual(json.loads(out)["answered"], 4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
