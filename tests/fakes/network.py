"""Things between a site and its model's server: a proxy, a redirect, a private CA.

All are on loopback.
"""

import http.client
import select
import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from .upstream import Upstream


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        """Quiet: the tests look at .seen."""

    def read_body(self):
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def answer(self, status, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", "0")
        self.end_headers()


class Proxy(Handler):
    """Passes everything on, by request or as a tunnel."""

    def is_refused(self):
        given = self.headers.get("proxy-authorization", "")
        self.server.seen.append((self.command, self.path, given))
        if not self.server.wanted or given == self.server.wanted:
            return False
        self.read_body()
        self.answer(407, Proxy_Authenticate="Basic")
        return True

    def do_CONNECT(self):
        if self.is_refused():
            return
        host, _, port = self.path.rpartition(":")
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        with socket.create_connection((host, int(port))) as there:
            join(self.connection, there)

    def do_POST(self):
        if self.is_refused():
            return
        target = urlsplit(self.path)
        there = http.client.HTTPConnection(target.hostname, target.port)
        drop = ("proxy-authorization", "proxy-connection", "connection")
        headers = {k: v for k, v in self.headers.items() if k.lower() not in drop}
        there.request("POST", target.path, self.read_body(), headers)
        found = there.getresponse()
        self.send_response(found.status)
        self.send_header("Content-Type", found.headers["content-type"])
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(found.read())
        self.close_connection = True
        there.close()


def join(one, other):
    while True:
        for source in select.select([one, other], [], [])[0]:
            data = source.recv(65536)
            if not data:
                return
            (other if source is one else one).sendall(data)


class Redirector(Handler):
    """Sends everything on to .target."""

    def do_POST(self):
        self.read_body()
        given = self.headers.get("authorization", "")
        self.server.seen.append((self.command, self.path, given))
        target = self.server.target
        path = "" if target.endswith("#") else self.path
        self.answer(self.server.status, Location=target.removesuffix("#") + path)

    do_GET = do_POST  # noqa: N815


@contextmanager
def serve(handler, host="127.0.0.1", **values):
    server = ThreadingHTTPServer((host, 0), handler)
    server.daemon_threads = True
    server.seen = []
    for name, value in values.items():
        setattr(server, name, value)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def make_certificate(folder):
    """Make a certificate of "localhost" and its own authority; return the file, and a
    folder as OpenSSL has them.
    """
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    command = ["openssl", "x509", "-hash", "-noout", "-in", str(certificate)]
    name = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    authorities = folder / "authorities"
    authorities.mkdir()
    (authorities / f"{name.strip()}.0").write_text(certificate.read_text())
    return key, certificate, authorities


@contextmanager
def secure_upstream(key, certificate):
    """The fake provider behind TLS."""
    server = Upstream()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    plain = server._server.socket
    server._server.socket = context.wrap_socket(plain, server_side=True)
    with server:
        yield server
