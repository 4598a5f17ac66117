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
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
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

    def __init__(self, address, credentials=None):
        self.address = address
        self.channel = grpc.insecure_channel(address) if credentials is None \
            else grpc.secure_channel(address, credentials)
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

    def watch(self, service=""):
        return health_pb2_grpc.HealthStub(self.channel).Watch(
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

    def serve(self, graph, *args, address="127.0.0.1:0", credentials=None):
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
        p.said = said
        at = m.group(1).replace("0.0.0.0", "127.0.0.1")
        client = Client(at, credentials)
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


class Watch(Case):
    """Health as balancers watch it."""
    MOST = 64  # watchers.h

    def states(self, *names):
        return [health_pb2.HealthCheckResponse.ServingStatus.Value(n)
                for n in names]

    def test_states(self):
        p, client = self.serve(self.graph(SLOW))
        whole, one, none = (client.watch(s) for s in
                            ("", "weir.v1.Predict", "nothing"))
        serving, stops, unknown = self.states("SERVING", "NOT_SERVING",
                                              "SERVICE_UNKNOWN")
        self.assertEqual([next(w).status for w in (whole, one, none)],
                         [serving, serving, unknown])
        # A run that does not end keeps the server from its end.
        long = client.start(n=("I64", (), struct.pack("<q", FOR_EVER)))
        client.start(n=("I64", (), struct.pack("<q", 1))).result()
        p.send_signal(signal.SIGTERM)
        self.assertEqual([next(w).status for w in (whole, one)], [stops] * 2)
        late = client.watch()
        self.assertEqual(next(late).status, stops)
        long.cancel()
        for w in (whole, one, none, late):
            with self.assertRaises(grpc.RpcError) as caught:
                next(w)
            self.assertEqual(
                (caught.exception.code(), caught.exception.details()),
                (grpc.StatusCode.UNAVAILABLE, "W7078: the server stops"))
        p.communicate(timeout=HANG)
        self.assertEqual(p.returncode, 143)

    def test_limit(self):
        """Those beyond are refused, and who leaves makes room."""
        p, client = self.serve(self.graph(SLOW))
        [serving] = self.states("SERVING")
        watches = [client.watch() for _ in range(self.MOST)]
        for w in watches:
            self.assertEqual(next(w).status, serving)
        with self.assertRaises(grpc.RpcError) as caught:
            next(client.watch())
        self.assertEqual(
            (caught.exception.code(), caught.exception.details()),
            (grpc.StatusCode.RESOURCE_EXHAUSTED, f"W7077: {self.MOST} clients "
             "watch the server's health, more may not"))
        # Others are served as before.
        self.assertEqual(client.health().status, serving)
        client.start(n=("I64", (), struct.pack("<q", 1))).result()
        watches[7].cancel()
        while True:  # the server has not heard of it yet
            try:
                self.assertEqual(next(client.watch()).status, serving)
                break
            except grpc.RpcError as e:
                self.assertEqual(e.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual(self.stop(p)["answered"], 1)


CONFIG = """[req]
distinguished_name = dn
prompt = no
[dn]
CN = test
[ca]
default_ca = me
[me]
database = {db}
default_md = sha256
rand_serial = yes
policy = any
unique_subject = no
[any]
commonName = optional
[ext]
basicConstraints = CA:FALSE
extendedKeyUsage = {usage}
subjectAltName = DNS:localhost, IP:127.0.0.1
"""
GOOD = ("20200101000000Z", "20991231000000Z")
PAST = ("20200101000000Z", "20200102000000Z")
FUTURE = ("20980101000000Z", "20991231000000Z")


@unittest.skipUnless(shutil.which("openssl"), "no openssl, the command")
class Tls(Case):
    """Requests that are encrypted."""

    def setUp(self):
        super().setUp()
        for name in ("ca", "other"):
            self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                         "ec_paramgen_curve:P-256", "-nodes", "-days", 2,
                         "-subj", f"/CN={name}", "-keyout",
                         self.file(f"{name}.key"), "-out", self.file(name))
        self.sign("server")
        self.model = self.graph(SLOW)

    def file(self, name):
        return self.path / (name if "." in name else name + ".pem")

    def openssl(self, *args):
        subprocess.run(["openssl", *map(str, args)], check=True, timeout=HANG,
                       capture_output=True)

    def sign(self, name, times=GOOD, usage="serverAuth,clientAuth", ca="ca"):
        """A pair NAME.pem, NAME.key."""
        work = pathlib.Path(tempfile.mkdtemp(dir=self.path))
        (work / "db").write_text("")
        (work / "c").write_text(CONFIG.format(db=work / "db", usage=usage))
        self.openssl("req", "-new", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:P-256", "-nodes", "-config", work / "c",
                     "-keyout", self.file(name + ".key"), "-out", work / "csr")
        self.openssl("ca", "-batch", "-notext", "-config", work / "c", "-in",
                     work / "csr", "-out", self.file(name), "-outdir", work,
                     "-cert", self.file(ca), "-keyfile",
                     self.file(ca + ".key"), "-startdate", times[0],
                     "-enddate", times[1], "-extensions", "ext")

    def tls(self, name="server", ca=None):
        """Options of a server."""
        more = ("--tls-ca", self.file(ca)) if ca else ()
        return ("--tls-cert", self.file(name), "--tls-key",
                self.file(name + ".key"), *more)

    def credentials(self, name=None, ca="ca"):
        """A client's, with the pair NAME if it has one."""
        pair = [self.file(n).read_bytes() for n in (name + ".key", name)] \
            if name else (None, None)
        return grpc.ssl_channel_credentials(self.file(ca).read_bytes(), *pair)

    def ask(self, address, credentials):
        """The answer that a new client gets, or its error."""
        # Channels to one address share connections, but not over credentials.
        channel = grpc.secure_channel(address, credentials) if credentials \
            else grpc.insecure_channel(address)
        with channel:
            try:
                return health_pb2_grpc.HealthStub(channel).Check(
                    health_pb2.HealthCheckRequest(), timeout=HANG).status
            except grpc.RpcError as e:
                self.assertEqual(e.code(), grpc.StatusCode.UNAVAILABLE)
                return e

    def refusal(self, p, address, credentials):
        """The line of the log about a client that is refused."""
        self.assertIsInstance(self.ask(address, credentials), grpc.RpcError)
        line = ""
        while " refused " not in line:
            line = p.stderr.readline()
            self.assertTrue(line, "the server has ended")
        return line

    SERVING = health_pb2.HealthCheckResponse.SERVING

    def test_stock_client(self):
        p, client = self.serve(self.model, *self.tls(),
                               credentials=self.credentials())
        [y] = client.start(n=("I64", (), struct.pack("<q", 3))
                           ).result().outputs
        self.assertEqual(struct.unpack("<q", y.data), (0,))
        self.assertEqual(next(client.watch()).status, self.SERVING)
        # By a name of the certificate.
        at = client.address.replace("127.0.0.1", "localhost")
        self.assertEqual(self.ask(at, self.credentials()), self.SERVING)
        # Who does not trust the server, and who does not speak TLS.
        self.assertIsInstance(
            self.ask(client.address, self.credentials(ca="other")),
            grpc.RpcError)
        self.assertIsInstance(self.ask(client.address, None), grpc.RpcError)
        self.assertEqual(self.ask(client.address, self.credentials()),
                         self.SERVING)
        self.assertEqual(self.stop(p)["answered"], 1)

    def test_beyond_loopback(self):
        """Encrypted; else refused, or with one warning."""
        p, client = self.serve(self.model, *self.tls(), address="0.0.0.0:0",
                               credentials=self.credentials())
        self.assertEqual(client.health().status, self.SERVING)
        self.assertNotIn("warning", p.said)
        self.stop(p)
        p = self.weir("predict", self.model, "--serve", "0.0.0.0:0", code=2)
        self.assertIn("--tls-cert and --tls-key encrypt them", p.stderr)
        p, client = self.serve(self.model, "--insecure", address="0.0.0.0:0")
        self.assertEqual(p.said.count("warning: requests from other machines "
                                      "are not encrypted"), 1)
        self.stop(p)
        for more in ((), ("--insecure",)):  # no warning where there is no need
            args = self.tls() if not more else ()
            p, client = self.serve(self.model, *args, *more,
                                   credentials=args and self.credentials()
                                   or None)
            self.assertNotIn("warning", p.said)
            self.stop(p)

    def test_clients_with_certificates(self):
        self.sign("client")
        self.sign("stranger", ca="other")
        self.sign("old", times=PAST)
        self.sign("early", times=FUTURE)
        self.sign("wrong", usage="serverAuth")
        p, client = self.serve(self.model, *self.tls(ca="ca"),
                               credentials=self.credentials("client"))
        [y] = client.start(n=("I64", (), struct.pack("<q", 3))
                           ).result().outputs
        self.assertEqual(struct.unpack("<q", y.data), (0,))
        at = client.address
        self.assertIn("refused a client: it shows no certificate",
                      self.refusal(p, at, self.credentials()))
        time.sleep(1.1)  # at most a line a second
        for name in ("stranger", "old", "early", "wrong"):
            self.assertIn("its certificate is of another authority than those "
                          "of `ca`, or not valid now",
                          self.refusal(p, at, self.credentials(name)))
            time.sleep(1.1)
        self.assertIn("it does not speak TLS", self.refusal(p, at, None))
        self.assertEqual(self.ask(at, self.credentials("client")),
                         self.SERVING)
        self.assertEqual(self.stop(p)["answered"], 1)

    def test_own_files(self):
        """Looked at before it listens: exit code 9."""
        self.sign("old", times=PAST)
        self.sign("early", times=FUTURE)
        self.sign("wrong", usage="clientAuth")
        self.sign("second")
        self.file("junk").write_text("junk")
        cert, key = self.file("server"), self.file("server.key")
        none = self.file("none")
        for args, says in (
                (self.tls("old"), "has expired on Jan  2 00:00:00 2020 GMT"),
                (self.tls("early"), "is not valid before Jan  1"),
                (self.tls("wrong"), "the use serverAuth is expected"),
                (("--tls-cert", cert, "--tls-key", self.file("second.key")),
                 "does not fit the certificate"),
                (("--tls-cert", cert, "--tls-key", none),
                 "none.pem cannot be read: No such file"),
                (("--tls-cert", none, "--tls-key", key), "cannot be read"),
                (("--tls-cert", self.file("junk"), "--tls-key", key),
                 "holds no certificate in PEM form"),
                (self.tls(ca="junk"), "holds no certificate in PEM form"),
                (self.tls(ca="none"), "cannot be read")):
            with self.subTest(says):
                p = self.weir("predict", self.model, "--serve", "127.0.0.1:0",
                              *args, code=9)
                self.assertIn("error[W7060]: tls: ", p.stderr)
                self.assertIn(says, p.stderr)
                self.assertNotIn("listening", p.stderr)
        for args, says in (
                (self.tls()[:2], "--tls-cert has no effect without --tls-key"),
                (self.tls()[2:], "--tls-key has no effect without --tls-cert"),
                (("--tls-ca", cert), "--tls-ca has no effect without"),
                ((*self.tls(), "--insecure"), "--insecure has no effect")):
            p = self.weir("predict", self.model, "--serve", "127.0.0.1:0",
                          *args, code=2)
            self.assertIn(says, p.stderr)
        p = self.weir("predict", self.model, *self.tls(), "-i", "n=1", code=2)
        self.assertIn("--tls-cert has no effect without --serve", p.stderr)

    def test_files_change(self):
        """A new connection takes what is there then; what cannot be used is
        left alone, with a warning."""
        p, client = self.serve(self.model, *self.tls(),
                               credentials=self.credentials())
        self.assertEqual(client.health().status, self.SERVING)
        self.sign("next", ca="other")
        os.replace(self.file("next"), self.file("server"))
        # The key is still the old one's.
        self.assertEqual(self.ask(client.address, self.credentials()),
                         self.SERVING)
        self.assertIn("new connections use the files that were read before",
                      p.stderr.readline())
        os.replace(self.file("next.key"), self.file("server.key"))
        self.assertEqual(
            self.ask(client.address, self.credentials(ca="other")),
            self.SERVING)
        self.assertIsInstance(self.ask(client.address, self.credentials()),
                              grpc.RpcError)
        self.assertEqual(client.health().status, self.SERVING)  # goes on
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
        late = start(FOR_EVER, timeout=1)
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
        futures = [start(FOR_EVER, timeout=3) for _ in range(9)]
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
