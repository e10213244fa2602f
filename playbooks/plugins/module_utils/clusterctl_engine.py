"""The Docker Engine's API over its Unix socket: no client binary, nothing on a command line."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import socket
import time

try:
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import quote, urlencode
except ImportError:  # pragma: no cover
    HTTPConnection = object
    HTTPException = Exception

SOCKET = "/var/run/docker.sock"


class EngineError(Exception):
    """The engine said no (status > 0), or does not answer (status 0)."""

    def __init__(self, message, status=0):
        super(EngineError, self).__init__(message)
        self.status = status


class _UnixConnection(HTTPConnection):
    def __init__(self, path, timeout):
        super(_UnixConnection, self).__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Engine(object):
    def __init__(self, path=SOCKET, timeout=30):
        self.path = path
        self.timeout = timeout

    def call(self, method, path, body=None, query=None, timeout=None):
        """The decoded answer; EngineError for everything that is not a success."""
        target = path + ("?" + urlencode(query) if query else "")
        data = None if body is None else json.dumps(body)
        connection = _UnixConnection(self.path, timeout or self.timeout)
        try:
            connection.request(method, target, data, {"Content-Type": "application/json"} if data else {})
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
            status = answer.status
        except (OSError, HTTPException) as error:
            raise EngineError("the engine does not answer at %s: %s" % (self.path, error or type(error).__name__))
        finally:
            connection.close()
        try:
            value = json.loads(text) if text.strip() else None
        except ValueError:
            value = text
        if status >= 400:
            message = value.get("message") if isinstance(value, dict) else text.strip()
            raise EngineError(message or "HTTP status %d" % status, status)
        return value

    def get(self, path, query=None, timeout=None):
        return self.call("GET", path, query=query, timeout=timeout)

    def post(self, path, body=None, query=None, timeout=None):
        return self.call("POST", path, body=body, query=query, timeout=timeout)

    def delete(self, path, query=None):
        return self.call("DELETE", path, query=query)

    def info(self, wait=0):
        """GET /info, tried again for `wait` seconds while nobody answers."""
        until = time.time() + wait
        while True:
            try:
                return self.get("/info")
            except EngineError as error:
                if error.status or time.time() >= until:
                    raise
            time.sleep(0.5)


def segment(text):
    """One segment of a path."""
    return quote(text, safe="")
