#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Certificates of tasks: `weir cluster certs` makes them; real processes show
them, and each fault has its sentence, its id and the exit code 9.

  test_certs.py WEIR SOURCE_ROOT [CASE...]

No verdict depends on a time limit: those here end a test that hangs.
"""
import os
import pathlib
import re
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

WEIR, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ENV = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
HANG = 300


def openssl(*args, **more):
    return subprocess.run(["openssl", *map(str, args)], check=True, text=True,
                          timeout=HANG, capture_output=True, **more).stdout


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-certs-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def weir(self, *args, code=0, **env):
        p = subprocess.run([WEIR, *map(str, args)], cwd=self.path, timeout=HANG,
                           env={**ENV, **env}, capture_output=True, text=True)
        self.assertEqual(p.returncode, code, f"{args}: {p.stderr}")
        return p

    def certs(self, spec, *more, **env):
        return self.weir("cluster", "certs", "c", "--cluster", spec, *more,
                         **env)


class Make(Case):
    def test_a_pair_for_each_task_and_the_driver(self):
        self.certs("ps=1,worker=2", "--days", 3)
        names = {"ca": None, "ps-0": "weir://ps/0", "driver": "weir://driver",
                 "worker-0": "weir://worker/0", "worker-1": "weir://worker/1"}
        self.assertEqual(sorted(os.listdir(self.path / "c")), sorted(
            f"{n}.{end}" for n in names for end in ("key", "pem")))
        for name, uri in names.items():
            pem, key = (self.path / "c" / f"{name}.{e}" for e in ("pem", "key"))
            self.assertEqual(stat.S_IMODE(key.stat().st_mode), 0o600)
            text = openssl("x509", "-in", pem, "-noout", "-text")
            self.assertIn(f"URI:{uri}\n" if uri else "CA:TRUE", text)
            self.assertEqual(openssl("x509", "-in", pem, "-noout", "-pubkey"),
                             openssl("pkey", "-in", key, "-pubout"))
            openssl("verify", "-CAfile", self.path / "c" / "ca.pem", pem)
            openssl("x509", "-in", pem, "-noout", "-checkend", 2 * 86400)
            with self.assertRaises(subprocess.CalledProcessError):
                openssl("x509", "-in", pem, "-noout", "-checkend", 4 * 86400)

    def bytes(self):
        return {p.name: p.read_bytes() for p in (self.path / "c").iterdir()}

    def test_nothing_is_overwritten(self):
        self.certs("worker=1")
        before = self.bytes()
        (self.path / "c.yaml").write_text(
            'worker: ["host-a:1", "host-b:1"]\nps: ["host-c:1"]\n')
        self.certs("c.yaml", "-q")
        after = self.bytes()
        self.assertEqual(set(after) - set(before),
                         {"ps-0.key", "ps-0.pem", "worker-1.key",
                          "worker-1.pem"})
        self.assertEqual({n: after[n] for n in before}, before)
        openssl("verify", "-CAfile", self.path / "c" / "ca.pem",
                self.path / "c" / "worker-1.pem")

    def test_what_does_not_fit_is_refused(self):
        self.certs("worker=1")
        for gone, left, spec in (
                ("worker-0.key", "worker-0.pem", "worker=1"),
                ("driver.pem", "driver.key", "worker=1"),
                ("ca.pem", "worker-0.pem", "worker=2"),
                ("ca.key", "ca.pem", "worker=2")):
            os.rename(self.path / "c" / gone, self.path / "gone")
            before = self.bytes()
            said = self.certs(spec, code=2).stderr
            self.assertIn("W0002", said)
            self.assertIn(f"c/{left} is there, but not c/{gone}", said)
            self.assertEqual(self.bytes(), before)
            os.rename(self.path / "gone", self.path / "c" / gone)

    def test_faults(self):
        said = self.certs("worker=1", code=2, PATH="/nowhere").stderr
        self.assertIn("openssl, the command, is not installed", said)
        self.assertEqual(os.listdir(self.path / "c"), [])
        false = self.path / "bin"
        false.mkdir()
        shutil.copy(shutil.which("false"), false / "openssl")
        said = self.certs("worker=1", code=2, PATH=str(false)).stderr
        self.assertIn("openssl failed", said)
        self.assertEqual(os.listdir(self.path / "c"), [])
        (self.path / "c").rmdir()
        (self.path / "c").write_text("")
        self.assertIn("W5009", self.certs("worker=1", code=6).stderr)
        for words, code, says in (
                (("cluster", "certs"), 2, "W0001"),
                (("cluster", "certs", "d", "e"), 2, "W0001"),
                (("cluster", "certs", "d"), 2, "--cluster is missing"),
                (("cluster", "no", "d", "--cluster", "worker=1"), 2,
                 "unknown action"),
                (("cluster", "certs", "d", "--cluster", "w=no"), 2, "W3020"),
                (("cluster", "certs", "d", "--cluster", "no.yaml"), 5,
                 "W4001")):
            self.assertIn(says, self.weir(*words, code=code).stderr)



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
subjectAltName = URI:{uri}
"""
GOOD = ("20200101000000Z", "20991231000000Z")
PAST = ("20200101000000Z", "20200102000000Z")
FUTURE = ("20980101000000Z", "20991231000000Z")
GRAPH = ROOT / "graphs" / "tiny_matmul.weir.yaml"


class Tls(Case):
    """Tasks ps:0 and worker:0 with the certificates in the folder c."""

    def setUp(self):
        super().setUp()
        self.certs("ps=1,worker=2", "-q")
        self.file = self.cluster_file("tasks.yaml")

    def cluster_file(self, name, ps="127.0.0.1:1", worker="127.0.0.1:2",
                     more="tls: c\n"):
        path = self.path / name
        path.write_text(f'ps: ["{ps}"]\nworker: ["{worker}"]\n{more}')
        return path

    def copy(self, *names):
        """Pairs of the folder c as (ca, cert, key) in a folder of their own."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.path))
        for name in names:
            shutil.copy(self.path / "c" / name, folder)
        return folder

    def sign(self, folder, name, uri, times=GOOD, usage="serverAuth,clientAuth",
             ca="c"):
        """A pair NAME.pem, NAME.key in |folder|, by the authority of |ca|."""
        work = pathlib.Path(tempfile.mkdtemp(dir=self.path))
        (work / "db").write_text("")
        (work / "config").write_text(CONFIG.format(db=work / "db", uri=uri,
                                                   usage=usage))
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-config",
                work / "config", "-keyout", folder / f"{name}.key", "-out",
                work / "csr")
        openssl("ca", "-batch", "-notext", "-config", work / "config", "-in",
                work / "csr", "-out", folder / f"{name}.pem", "-outdir", work,
                "-cert", self.path / ca / "ca.pem", "-keyfile",
                self.path / ca / "ca.key", "-startdate", times[0], "-enddate",
                times[1], "-extensions", "ext")

    def start(self, *args):
        p = subprocess.Popen([WEIR, *map(str, args)], cwd=self.path, env=ENV,
                             text=True, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def task(self, job, file=None, listen="127.0.0.1:0"):
        """A task that serves; its process and its address."""
        p = self.start("task", "--job", job, "--cluster", file or self.file,
                       "--listen", listen, "--threads", 1)
        line = self.until(p, "listening at")
        return p, re.search(r"listening at (\S+)", line).group(1)

    def until(self, p, words):
        line = ""
        while words not in line:
            line = p.stderr.readline()
            self.assertTrue(line, "the process has ended")
        return line

    def run_over(self, file, *more, code=0):
        return self.weir("run", GRAPH, "-i", "b=f32:2x2=0,1,1,0", "--placer",
                         "round_robin", "--cluster", file, *more, code=code)

    def context(self, server, name, ca="c", **more):
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server
                           else ssl.PROTOCOL_TLS_CLIENT)
        c.check_hostname = False
        c.verify_mode = ssl.CERT_REQUIRED
        c.load_verify_locations(self.path / ca / "ca.pem")
        if name:
            c.load_cert_chain(f"{name}.pem", f"{name}.key")
        c.set_alpn_protocols(["h2"])
        return c


class Serve(Tls):
    def test_a_run_over_certificates(self):
        alone = self.weir("run", GRAPH, "-i", "b=f32:2x2=0,1,1,0").stdout
        for at in ("127.0.0.1:0", "unix"):
            where = (at, at) if at != "unix" else (
                f"unix:{self.path}/p", f"unix:{self.path}/w")
            ps, at_ps = self.task("ps", listen=where[0])
            worker, at_worker = self.task("worker", listen=where[1])
            more = ("tls:\n  ca: c/ca.pem\n  cert: c/%t.pem\n"
                    f"  key: \"{self.path}/c/%t.key\"\n")
            for file in (self.cluster_file("a.yaml", at_ps, at_worker),
                         self.cluster_file("b.yaml", at_ps, at_worker, more)):
                p = self.run_over(file)
                self.assertEqual(p.stdout, alone)
                self.assertIn("came from tasks", p.stderr)
            self.until(worker, "from other tasks")
            self.until(ps, "from other tasks")

    def test_the_section_of_a_graph(self):
        """Its paths begin at the graph's folder."""
        ps, at_ps = self.task("ps")
        worker, at_worker = self.task("worker")
        graph = self.path / "sub" / "g.weir.yaml"
        graph.parent.mkdir()
        graph.write_text(GRAPH.read_text() + f'cluster: {{ps: ["{at_ps}"], '
                         f'worker: ["{at_worker}"], tls: ../c}}\n')
        self.weir("run", graph, "-i", "b=f32:2x2=0,1,1,0", "--cluster", "graph")

    def test_the_name_of_another_task(self):
        """worker:0 at the address of ps:0, and the other way round."""
        ps, at_ps = self.task("ps")
        worker, at_worker = self.task("worker")
        said = self.run_over(self.cluster_file("x.yaml", at_worker, at_ps),
                             code=9).stderr
        self.assertIn("W7063", said)
        # One of them is told; the other may not have answered by then.
        self.assertRegex(said, "its certificate is of weir://(worker/0, not of "
                         "weir://ps/0|ps/0, not of weir://worker/0)")

    def test_insecure(self):
        """Beyond loopback: refused, or one warning a start, or certificates."""
        plain = self.cluster_file("p.yaml", more="")
        beyond = ("task", "--job", "ps", "--listen", "0.0.0.0:0", "--cluster")
        said = self.weir(*beyond, plain, code=2).stderr
        self.assertIn("W7002", said)
        self.assertIn("the cluster needs `tls`, or `insecure: true`", said)
        p = self.start(*beyond, plain, "--insecure")
        self.assertIn("warning: frames to other machines are not encrypted",
                      p.stderr.readline())
        self.assertIn("listening at 0.0.0.0:", p.stderr.readline())
        p = self.start(*beyond, self.file)
        self.assertIn("listening at 0.0.0.0:", p.stderr.readline())
        # Nobody listens there; the warning comes before.
        plain = self.cluster_file("q.yaml", "192.0.2.1:9", "192.0.2.1:8",
                                  "insecure: true\n")
        said = self.run_over(plain, "--start-timeout", "100ms", code=138).stderr
        self.assertEqual(said.count("warning: frames to other"), 1, said)
        said = self.run_over(self.file, "--insecure", code=2).stderr
        self.assertIn("certificates and insecure exclude each other", said)

    def test_the_section(self):
        """Places and hints of what is wrong in it."""
        for text, at, says in (
                ("tls: {ca: a, cert: b, key: c, pem: d}", "3:31",
                 "no such key, expected ca, cert or key: pem"),
                ("tls: {ca: a, cert: b}", "3:6", "a file is missing: key"),
                ("tls: [c]", "3:6", "expected a path"),
                ('tls: ""', "3:6", "expected a path"),
                ("tls: {ca: a, cert: '%i.pem', key: c}", "3:20",
                 "% stands before t, for the task, or % only: %i.pem"),
                ("tls: {ca: a, cert: x%, key: c}", "3:20", "% stands before t"),
                ("tls: {ca: a, cert: [b], key: c}", "3:20", "expected a path"),
                ('tls: {ca: "a\\x01", cert: b, key: c}', "3:11",
                 "a control character"),
                ('tls: {ca: a, cert: "%\\0", key: c}', "3:20", "% stands"),
                (f"tls: {'x' * 1025}", "3:6", "paths end at 1024 bytes"),
                ("tls: c\ninsecure: true", "3:6",
                 "`tls` and `insecure: true` exclude each other")):
            file = self.cluster_file("bad.yaml", more=text + "\n")
            said = self.weir("task", "--job", "ps", "--cluster", file,
                             code=2).stderr
            self.assertIn("W3020", said)
            self.assertIn(says, said)
            self.assertIn(f"bad.yaml:{at}", said)


class Own(Tls):
    """Own files, before anything is dialled or listened at."""

    def both(self, folder, says, name=None):
        """The driver and ps:0 with |folder|, or its pairs named |name|."""
        more = f"tls: {folder}\n"
        if name:
            more = (f"tls: {{ca: {folder}/ca.pem, cert: {folder}/{name}.pem, "
                    f"key: {folder}/{name}.key}}\n")
        file = self.cluster_file("own.yaml", more=more)
        for p in (self.run_over(file, code=9),
                  self.weir("task", "--job", "ps", "--cluster", file,
                            "--listen", "127.0.0.1:0", code=9)):
            self.assertIn("W7060", p.stderr)
            self.assertRegex(p.stderr, says)
            self.assertNotIn("listening", p.stderr)

    def test_files(self):
        self.both(self.path / "nothing", "ca.pem cannot be read: No such file")
        all_of = ("ca.pem", "driver.pem", "driver.key", "ps-0.pem", "ps-0.key")
        folder = self.copy(*all_of)
        for name in ("driver.key", "ps-0.key"):
            (folder / name).write_text("no key\n")
        self.both(folder, r"(driver|ps-0).key holds no private key in PEM")
        folder = self.copy(*all_of)
        for name in ("driver.pem", "ps-0.pem"):
            (folder / name).write_bytes(b"\0\0")
        self.both(folder, r"(driver|ps-0).pem holds no certificate in PEM")
        folder = self.copy(*all_of)
        (folder / "ca.pem").write_text("")
        self.both(folder, "ca.pem holds no certificate in PEM")
        (folder / "ca.pem").unlink()
        (folder / "ca.pem").mkdir()
        self.both(folder, "ca.pem cannot be read: it is no plain file")
        (folder / "ca.pem").rmdir()
        os.mkfifo(folder / "ca.pem")
        self.both(folder, "ca.pem cannot be read: it is no plain file")
        (folder / "ca.pem").unlink()
        (folder / "ca.pem").write_bytes(b"x" * ((1 << 20) + 1))
        self.both(folder, "ca.pem cannot be read: it has more than 1 MiB")
        folder = self.copy(*all_of)
        for name in ("driver.key", "ps-0.key"):
            shutil.copy(self.path / "c" / "worker-0.key", folder / name)
        self.both(folder, "the key .* does not fit the certificate")

    def test_certificates(self):
        self.certs("worker=1", "-q")
        folder = self.copy("ca.pem")
        self.weir("cluster", "certs", "o", "--cluster", "ps=1", "-q")
        for name, uri in (("driver", "weir://driver"), ("ps-0", "weir://ps/0")):
            self.sign(folder, name, uri, PAST)
        self.both(folder, "has expired on Jan  2 00:00:00 2020 GMT")
        for name, uri in (("driver", "weir://driver"), ("ps-0", "weir://ps/0")):
            self.sign(folder, name, uri, FUTURE)
        self.both(folder, "is not valid before Jan  1 00:00:00 2098 GMT")
        for name, uri in (("driver", "weir://driver"), ("ps-0", "weir://ps/0")):
            self.sign(folder, name, uri, usage="codeSigning")
        self.both(folder, "is not for this side of a connection")
        for name, uri in (("driver", "weir://driver"), ("ps-0", "weir://ps/0")):
            self.sign(folder, name, uri, ca="o")
        self.both(folder, "is signed by another authority")
        self.both("c", "is of weir://worker/0, this process is weir://", "worker-0")
        self.both("c", "is of no task, this process is weir://", "ca")


class Peers(Tls):
    """Certificates of the process that is dialled; scripted peers stand in for
    tasks that would not have started."""

    def peer(self, talk):
        """Listens and gives each connection to |talk|; the address."""
        s = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(s.close)
        self.addCleanup(s.shutdown, socket.SHUT_RDWR)

        def serve():
            while True:
                try:
                    c, _ = s.accept()
                except OSError:
                    return
                with c:
                    try:
                        talk(c)
                    except OSError:
                        pass
        threading.Thread(target=serve, daemon=True).start()
        return "127.0.0.1:%d" % s.getsockname()[1]

    def tls_peer(self, folder, name, ca="c"):
        context = self.context(True, folder / name, ca)

        def talk(c):
            with context.wrap_socket(c, server_side=True) as t:
                while t.recv(4096):
                    pass
        return self.peer(talk)

    def refused(self, address, code, error, says):
        file = self.cluster_file("d.yaml", address, address[:-1] + (
            "1" if address[-1] != "1" else "2"))
        text = file.read_text().splitlines()
        file.write_text(f"{text[0]}\n{text[2]}\n")  # ps:0 alone
        said = self.run_over(file, "--start-timeout", "2s", code=code).stderr
        self.assertIn(f"error[{error}]", said)
        self.assertIn(f"ps:0 at {address}", said)
        self.assertIn(says, said)

    def test_each_fault_has_a_sentence(self):
        folder = self.copy("ca.pem")
        self.weir("cluster", "certs", "o", "--cluster", "ps=1", "-q")
        self.refused(self.tls_peer(self.path / "o", "ps-0"), 9, "W7061",
                     "its certificate is signed by another authority")
        for times, says in ((PAST, "has expired on Jan  2"),
                            (FUTURE, "is not valid before Jan  1")):
            self.sign(folder, "ps-0", "weir://ps/0", times)
            self.refused(self.tls_peer(folder, "ps-0"), 9, "W7062",
                         f"its certificate {says}")
        self.sign(folder, "ps-0", "weir://ps/0", usage="clientAuth")
        self.refused(self.tls_peer(folder, "ps-0"), 9, "W7061",
                     "is not for this side of a connection")
        # It knows another authority than ours, and we know its.
        self.refused(self.tls_peer(self.path / "c", "ps-0", "o"), 9, "W7064",
                     "closed the connection when it had seen our certificate")
        closes = self.peer(lambda c: c.recv(10))
        file = self.path / "three.yaml"
        file.write_text('ps: ["127.0.0.1:1", "no-such-host.invalid:1", '
                        f'"{closes}"]\ntls: c\n')
        said = self.run_over(file, "--start-timeout", "2s", code=138).stderr
        self.assertIn("error[W7022]", said)
        for says in ("ps:0 at 127.0.0.1:1: cannot be reached: Connection "
                     "refused", "ps:1 at no-such-host.invalid:1: cannot be "
                     "reached: the name is not known"):
            self.assertIn(says, said)
        self.assertRegex(said, f"ps:2 at {closes}: cannot be reached: (it closed "
                         "the connection|the connection ended) before it showed "
                         "a certificate")

    def test_no_tls_there(self):
        plain = self.cluster_file("p.yaml", more="")
        _, address = self.task("ps", plain)
        self.refused(address, 9, "W7065", "it does not speak TLS")

    def test_tls_there_alone(self):
        p, address = self.task("ps")
        file = self.path / "d.yaml"
        file.write_text(f'ps: ["{address}"]\nworker: ["{address[:-1]}"]\n')
        said = self.run_over(file, "--start-timeout", "2s", code=138).stderr
        self.assertIn("W7022", said)
        self.assertIn("a task with `tls`, whose log says so", said)
        self.assertIn("it does not speak TLS", self.until(p, "refused"))


class Strangers(Tls):
    """What the log of a task says of them, and that it serves on."""

    def come(self, address, context=None, say=b""):
        """A connection to |address|; the address of this end."""
        host, port = address.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as s:
            mine = "%s:%d" % s.getsockname()
            try:
                s.settimeout(HANG)
                if context:
                    with context.wrap_socket(s) as t:
                        while t.recv(4096):
                            pass
                elif say:
                    s.sendall(say)
                    while s.recv(4096):
                        pass
            except OSError:
                pass
        return mine

    def test_one_line_each(self):
        self.weir("cluster", "certs", "o", "--cluster", "ps=1", "-q")
        nobody = self.context(False, None)
        other = self.context(False, self.path / "o" / "driver")
        for context, say, why in (
                (nobody, b"", "it shows no certificate"),
                (other, b"", "its certificate is of another authority"),
                (None, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                 "it does not speak TLS"),
                (None, b"GET / HTTP/1.1\r\n\r\n",
                 "it does not speak TLS, but HTTP"),
                (None, b"", "it ended the handshake")):
            p, address = self.task("worker")
            who = self.come(address, context, say)
            line = self.until(p, "refused")
            self.assertIn(f"refused {who}: {why}", line)
            p.kill()

    def test_many_and_then_the_driver(self):
        """Lines and the strangers they count are as many as came."""
        ps, at_ps = self.task("ps")
        worker, at_worker = self.task("worker")
        count = 30
        for _ in range(count):
            self.come(at_ps, None, b"GET / HTTP/1.1\r\n\r\n")
        self.run_over(self.cluster_file("d.yaml", at_ps, at_worker))
        ps.terminate()
        lines = [l for l in ps.stderr.read().splitlines() if "refused" in l]
        more = sum(int(m) for l in lines
                   for m in re.findall(r"; (\d+) more before", l))
        self.assertGreaterEqual(len(lines), 1)
        self.assertLessEqual(len(lines) + more, count)
        self.assertEqual(ps.wait(), 143)

    def test_one_that_is_refused_by_its_hello(self):
        p, address = self.task("ps")
        other = self.path / "other.yaml"
        other.write_text(f'ps: ["{address}"]\ntls: c\n')
        said = self.run_over(other, code=138).stderr
        self.assertIn("another cluster file", said)
        self.assertRegex(self.until(p, "refused"), r"refused 127.0.0.1:\d+: "
                         "the driver was started with another cluster file")


class Reload(Tls):
    """Files that change under a task."""

    def shown(self, address):
        """The certificate that the task at |address| shows."""
        host, port = address.rsplit(":", 1)
        context = self.context(False, self.path / "c" / "driver")
        with socket.create_connection((host, int(port))) as s:
            with context.wrap_socket(s) as t:
                return t.getpeercert(True)

    def der(self, name):
        return ssl.PEM_cert_to_DER_cert((self.path / "c" / name).read_text())

    def test_new_connections_take_new_files(self):
        p, address = self.task("worker")
        ps, at_ps = self.task("ps")
        first = self.der("worker-0.pem")
        self.assertEqual(self.shown(address), first)
        fresh = pathlib.Path(tempfile.mkdtemp(dir=self.path))
        self.sign(fresh, "worker-0", "weir://worker/0")
        c = self.path / "c"
        # The certificate is there before its key: the pair before stays.
        shutil.copy(fresh / "worker-0.pem", c)
        self.assertEqual(self.shown(address), first)
        line = self.until(p, "warning")
        self.assertIn("does not fit the certificate", line)
        self.assertIn("new connections use the files that were read before",
                      line)
        # Half of the key.
        text = (fresh / "worker-0.key").read_text()
        (c / "worker-0.key").write_text(text[:len(text) // 2])
        self.assertEqual(self.shown(address), first)
        self.assertIn("holds no private key", self.until(p, "warning"))
        (c / "worker-0.key").unlink()
        self.assertEqual(self.shown(address), first)
        self.assertIn("No such file", self.until(p, "warning"))
        # Whole again.
        (c / "worker-0.key").write_text(text)
        self.assertEqual(self.shown(address), self.der("worker-0.pem"))
        self.assertNotEqual(self.shown(address), first)
        self.run_over(self.cluster_file("d.yaml", at_ps, address))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
