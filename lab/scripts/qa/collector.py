#!/usr/bin/env python3
"""An OpenTelemetry collector as L0_trace configures its own: OTLP over HTTP on port 10000, and a file.

Each line of collected_traces.json is one export, in OTLP's JSON form. Exports that follow each other
within a second share a line, as the original's processor `batch` makes it.
"""

import base64
import http.server
import json
import threading

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

PORT = 10000
GATHER = 1.0  # s, the longest time between two exports of one line

lock = threading.Lock()
pending = []


def hexadecimal(spans):
    """OTLP's JSON has identities in hexadecimal digits, protobuf's own has base64."""
    for span in spans:
        for name in ("traceId", "spanId", "parentSpanId"):
            span[name] = base64.b64decode(span.get(name, "")).hex()
        span.setdefault("events", [])


def decode(body, kind):
    if "json" in kind:
        return json.loads(body)["resourceSpans"]
    message = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
    export = json_format.MessageToDict(message)
    for resource in export["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            hexadecimal(scope["spans"])
    return export["resourceSpans"]


def write():
    with lock:
        resources, pending[:] = list(pending), []
    if resources:
        with open("collected_traces.json", "a", encoding="utf-8") as file:
            file.write(json.dumps({"resourceSpans": resources}, separators=(",", ":")) + "\n")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.headers.get("Content-Type", "")
        with lock:
            first = not pending
            pending.extend(decode(body, kind))
        if first:
            threading.Timer(GATHER, write).start()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", "2" if "json" in kind else "0")
        self.end_headers()
        if "json" in kind:
            self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


open("collected_traces.json", "w", encoding="utf-8").close()
http.server.ThreadingHTTPServer(("", PORT), Handler).serve_forever()
