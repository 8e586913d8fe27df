# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stands in for Grafana Pyroscope and Parca: takes pushed profiles, and refuses what these engines refuse.

The rules are those of Pyroscope (pkg/validation, default limits) and of Parca (pkg/normalizer), and
some are stricter: unknown members and labels in another order are refused, too. A plan says which
requests fail, and how.
"""

import base64
import binascii
import http.server
import json
import pathlib
import re
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import pprof  # noqa: E402

PATHS = {"pyroscope": "/push.v1.PusherService/Push", "parca": "/api/profiles/writeraw"}
PROFILE_BYTES_MAX, SAMPLES_MAX, DEPTH_MAX, SYMBOL_BYTES_MAX = 4 * 1024 * 1024, 16000, 1000, 65535
LABELS_MAX, LABEL_NAME_BYTES_MAX, LABEL_VALUE_BYTES_MAX = 30, 1024, 2048
AHEAD_MAX_S = 600
REQUEST_BYTES_MAX = 64 * 1024 * 1024
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I)


class Refused(Exception):
    """The engine does not take the profile."""


# ---- Rules ----


def members(value, kinds):
    """Checks that a JSON object has only these members. @kinds: name -> type"""
    if not isinstance(value, dict):
        raise Refused(f"not an object: {str(value)[:60]}")
    for name, member in value.items():
        if name not in kinds:
            raise Refused(f'unknown field "{name}"')
        if not isinstance(member, kinds[name]):
            raise Refused(f'the field "{name}" has a wrong type')
    return value


def one_of(values, what):
    """One profile a request is a rule of virt-uprof: an answer then belongs to one profile."""
    if not isinstance(values, list) or len(values) != 1:
        raise Refused(f"the request does not have one {what}")
    return values[0]


def without_repeats(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise Refused("a JSON object has a member twice")
    return dict(pairs)


def read_request(engine, body):
    """Returns the labels as pairs, the compressed profile, and its ID or None."""
    try:
        document = json.loads(body.decode("utf-8"), object_pairs_hook=without_repeats)
    except ValueError as error:
        raise Refused(f"not JSON in UTF-8: {error}") from error
    if engine == "pyroscope":
        members(document, {"series": list})
        series = members(one_of(document.get("series"), "series"), {"labels": list, "samples": list})
        pairs = series.get("labels", [])
        sample = members(one_of(series.get("samples"), "sample"), {"rawProfile": str, "ID": str})
        if "ID" in sample and not UUID.fullmatch(sample["ID"]):
            raise Refused("the ID of the profile is not a UUID")
    else:
        members(document, {"tenant": str, "series": list, "normalized": bool})
        series = members(one_of(document.get("series"), "series"), {"labels": dict, "samples": list})
        pairs = members(series.get("labels", {}), {"labels": list}).get("labels", [])
        sample = members(one_of(series.get("samples"), "sample"), {"rawProfile": str})
    for pair in pairs:
        members(pair, {"name": str, "value": str})
    try:
        packed = base64.b64decode(sample.get("rawProfile", ""), validate=True)
    except binascii.Error as error:
        raise Refused(f"the profile is not Base64: {error}") from error
    return [(pair.get("name", ""), pair.get("value", "")) for pair in pairs], packed, sample.get("ID")


def check_labels(engine, pairs):
    names = [name for name, _ in pairs]
    if len(pairs) > LABELS_MAX:
        raise Refused(f"profile series has {len(pairs)} label names; limit {LABELS_MAX}")
    for name, value in pairs:
        if not LABEL_NAME.fullmatch(name) or len(name) > LABEL_NAME_BYTES_MAX:
            raise Refused(f"invalid label name '{name}'")
        if name.startswith("__") and name != "__name__":
            raise Refused(f"the label name '{name}' is reserved")
        if not value or len(value.encode()) > LABEL_VALUE_BYTES_MAX:
            raise Refused(f"the value of the label '{name}' is empty or too long")
    if len(set(names)) != len(names):
        raise Refused("duplicate label name")
    if names != sorted(names, key=str.encode):
        raise Refused(f"labels are not sorted: {names}")
    if "__name__" not in names:
        raise Refused("missing __name__ label")
    if engine == "pyroscope" and "service_name" not in names:
        raise Refused("service name is not provided")


def check_profile(packed, age_max_s):
    """Returns the decoded profile."""
    try:
        profile = pprof.Profile(packed, PROFILE_BYTES_MAX)
    except pprof.BadProfile as error:
        raise Refused(str(error)) from error
    faults = profile.faults()
    if faults:
        raise Refused(faults[0])
    if len(profile.samples) > SAMPLES_MAX:
        raise Refused(f"exceeds the samples count limit: {len(profile.samples)}")
    if not profile.samples:
        raise Refused("the profile has no sample")
    for sample in profile.samples:
        if min(sample["value"]) <= 0:
            raise Refused(f"a sample has the values {sample['value']}")
        if len(sample["location_id"]) > DEPTH_MAX:
            raise Refused(f"a stack has {len(sample['location_id'])} frames")
    if max(len(text.encode()) for text in profile.strings) > SYMBOL_BYTES_MAX:
        raise Refused("a name is too long")
    if profile.period <= 0 or profile.duration_nanos <= 0:
        raise Refused(f"the period is {profile.period} and the duration {profile.duration_nanos}")
    age = time.time() - profile.time_nanos / 1e9
    if age > age_max_s or age < -AHEAD_MAX_S:
        raise Refused(f"profile timestamp is outside of the window: it is {age:.0f} s old")
    return profile


# ---- Failures ----


class Action:
    """An answer other than the usual one."""

    def __init__(self, name, run, takes=False):
        """@run: called with the handler; @takes: the engine stores the profile before it fails"""
        self.name, self.run, self.takes = name, run, takes


def taking(action):
    """The engine stores the profile, but the sender does not learn it."""
    return Action(f"taking, then {action.name}", action.run, takes=True)


def status(code, text=None, headers=(), body=None):
    """@body: bytes; default: the text as the engine's JSON"""
    return Action(f"status {code}", lambda handler: handler.answer(
        code, handler.error_body(code, text or f"this is {code}") if body is None else body, headers))  # fmt: skip


def retry_after(code, value):
    return status(code, headers=(("Retry-After", str(value)),))


def redirect(url, code=302):
    return status(code, headers=(("Location", url),))


def page(code=200, text="<html><body>Log in</body></html>", kind="text/html"):
    return Action(f"page {code}", lambda handler: handler.answer(code, text.encode(), (("Content-Type", kind),)))


def hang(seconds=600):
    """Does not answer until the time is over, or until the test calls release() or stop()."""

    def run(handler):
        handler.receiver.released.wait(seconds)
        handler.close_connection = True

    return Action("hang", run)


def reset():
    """Closes the connection so that the sender gets RST."""

    def run(handler):
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.close_connection = True

    return Action("reset", run)


def raw(name, pieces, pause=0.0):
    """Writes bytes that need not be HTTP, and closes the connection. @pieces: of bytes, may be endless"""

    def run(handler):
        handler.close_connection = True
        try:
            for piece in pieces():
                handler.connection.sendall(piece)
                handler.receiver.count_bytes(len(piece))
                if pause and handler.receiver.released.wait(pause):
                    return
        except OSError:
            pass  # the sender has had enough

    return Action(name, run)


def head(code, length, kind="application/json"):
    return (f"HTTP/1.1 {code} Status\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n").encode()


def close_in_head():
    return raw("close in head", lambda: [b"HTTP/1.1 200 OK\r\nContent-Ty"])


def close_in_body():
    return raw("close in body", lambda: [head(200, 1000) + b'{"a": "'])


def close_at_once():
    return raw("close at once", lambda: [])


def garbage():
    return raw("garbage", lambda: [b"\x00\xff\x16\x03\x01 this is no HTTP \r\n\r\n" * 20])


def megabytes(count, code=200):
    """A JSON object with a long string."""

    def pieces():
        yield head(code, count * 1024 * 1024 + 10) + b'{"code":"'
        for _ in range(count * 16):
            yield b"x" * 65536
        yield b"}"

    return raw(f"megabytes {code}", pieces)


def drip(code=200, pause=0.2):
    """One byte of the body at a time, without an end."""

    def pieces():
        yield head(code, 100000) + b'{"a": "'
        while True:
            yield b"x"

    return raw("drip", pieces, pause)


# ---- The server ----


class Request:
    """A request, and what became of it."""

    def __init__(self, handler, body):
        self.at = time.monotonic()
        self.method, self.path, self.headers, self.body = handler.command, handler.path, handler.headers, body
        self.connection = handler.client_address[1]
        self.number = self.tries = 0
        self.outcome = None
        self.pairs, self.packed, self.id, self.profile, self.fault = [], b"", None, None, None

    @property
    def labels(self):
        return dict(self.pairs)

    @property
    def key(self):
        """The domain's UUID, and the second at which the round has started; None if there is no profile."""
        return (self.labels.get("domain_uuid"), self.profile.time_nanos // 10**9) if self.profile else None

    def check(self, receiver):
        """Applies the engine's rules."""
        try:
            if self.path != receiver.prefix + PATHS[receiver.engine]:
                raise Refused(f"there is nothing at {self.path}")
            if self.headers.get("Content-Type") != "application/json":
                raise Refused(f"Content-Type is {self.headers.get('Content-Type')}")
            self.pairs, self.packed, self.id = read_request(receiver.engine, self.body)
            self.profile = check_profile(self.packed, receiver.age_max_s)
            check_labels(receiver.engine, self.pairs)
        except Refused as error:
            self.fault = str(error)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # the head and the body of an answer are two packets
    timeout = 120

    def log_message(self, *words):
        pass

    @property
    def receiver(self):
        return self.server.receiver

    def error_body(self, code, text):
        """The engine's form of an error: Connect for Pyroscope, grpc-gateway for Parca."""
        if self.receiver.engine == "pyroscope":
            return json.dumps({"code": "invalid_argument", "message": text}).encode()
        return json.dumps({"code": 3, "message": text, "details": []}).encode()

    def answer(self, code, body, headers=()):
        self.send_response(code)
        headers = dict((("Content-Type", "application/json"), *headers))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.receiver.faults.append(f"{self.command} {self.path}")
        self.answer(405, b"")

    do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_GET

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > REQUEST_BYTES_MAX:
            self.receiver.faults.append(f"Content-Length is '{length}'")
            self.close_connection = True
            self.answer(411, b"")
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True  # the sender was killed
            return
        request = Request(self, body)
        request.check(self.receiver)
        action = self.receiver.decide(request)
        try:
            if action is not None:
                action.run(self)
            elif request.fault:
                self.answer(400, self.error_body(400, request.fault))
            else:
                self.answer(200, b"{}")
        except OSError:
            self.close_connection = True  # the sender was killed


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64

    def get_request(self):
        accepted = super().get_request()
        self.receiver.n_connections += 1
        return accepted

    def finish_request(self, request, client_address):
        """Does TLS in the connection's own thread."""
        if not self.receiver.context:
            super().finish_request(request, client_address)
            return
        try:
            request.settimeout(30)
            with self.receiver.context.wrap_socket(request, server_side=True) as wrapped:
                super().finish_request(wrapped, client_address)
        except OSError as error:  # also SSLError
            self.receiver.tls_failures.append(str(error))

    def shutdown_request(self, request):
        self.close_request(request)  # no FIN before a RST

    def handle_error(self, request, client_address):
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.receiver.faults.append(f"the receiver itself failed: {error!r}")


class Receiver:
    """An engine on a port of 127.0.0.1."""

    def __init__(self, engine, plan=None, tls=None, age_max_s=3600, tenant=None, authorization=None, prefix=""):
        """@plan: called with each Request, returns an Action, or None for the usual answer
        @tls: an ssl.SSLContext; @tenant, @authorization: what the headers must say; @prefix: of the path
        """
        self.engine, self.plan, self.context, self.age_max_s = engine, plan, tls, age_max_s
        self.tenant, self.authorization, self.prefix = tenant, authorization, prefix
        self.lock = threading.Lock()
        self.released = threading.Event()
        self.requests, self.accepted, self.faults, self.tls_failures = [], [], [], []
        self.tries = {}
        self.n_connections = self.n_bytes = 0
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.receiver = self
        self.port = self.server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}{prefix}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def stop(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def release(self):
        """Ends the waiting of all requests."""
        self.released.set()

    def count_bytes(self, count):
        with self.lock:
            self.n_bytes += count

    def decide(self, request):
        """Notes the request. Returns an Action, or None for the usual answer."""
        with self.lock:
            request.number = len(self.requests)
            name = request.key or request.body
            request.tries = self.tries.get(name, 0)
            self.tries[name] = request.tries + 1
            self.requests.append(request)
            action = self.check_headers(request) or (self.plan(request) if self.plan else None)
            request.outcome = action.name if action else "refused" if request.fault else "accepted"
            if request.fault:
                self.faults.append(request.fault)
            elif action is None or action.takes:
                self.accepted.append(request)
        return action

    def check_headers(self, request):
        if self.authorization and request.headers.get("Authorization") != self.authorization:
            return status(401, "no credentials, or wrong ones")
        if self.tenant and request.headers.get("X-Scope-OrgID") != self.tenant:
            return status(401, "no org id")
        return None

    def wait_for_requests(self, count, seconds=30):
        end = time.monotonic() + seconds
        while len(self.requests) < count and time.monotonic() < end:
            time.sleep(0.01)
        return len(self.requests) >= count


# ---- Plans ----


def first(count, action):
    """The first tries of each profile fail."""
    return lambda request: action if request.tries < count else None


def always(action):
    return lambda request: action


def of_domain(uuid, action):
    return lambda request: action if request.labels.get("domain_uuid") == uuid else None


# ---- Certificates ----


def run_openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


def make_key(folder, name, subject, *words):
    """Makes NAME.key and NAME.pem. Returns their paths, the certificate first."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    run_openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", f"/CN={subject}", "-keyout", key, "-out", certificate, *words)  # fmt: skip
    key.chmod(0o600)
    return certificate, key


def make_authority(folder, name):
    return make_key(folder, name, name, "-addext", "keyUsage=critical,keyCertSign,cRLSign")


def make_certificate(folder, name, authority, names="IP:127.0.0.1"):
    """@authority: from make_authority(); @names: the subjectAltName"""
    return make_key(folder, name, name, "-CA", authority[0], "-CAkey", authority[1], "-addext", f"subjectAltName={names}",
                    "-addext", "basicConstraints=critical,CA:FALSE")  # fmt: skip


def make_context(pair, client_authority=None):
    """@client_authority: clients need a certificate of this authority"""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*map(str, pair))
    if client_authority:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(str(client_authority[0]))
    return context
