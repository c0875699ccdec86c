from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from agentnb.errors import ExecutionError
from agentnb.secrets import mask_text
from agentnb.world.tools import http
from agentnb.world.tools.invocation import find_failure
from tests.world.tools.tool_samples import tool, wrong


class Answers(BaseHTTPRequestHandler):
    """Tells what it was asked; some paths do something else."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        """Stay silent."""

    def send(self, body, status=200, sort="application/json", **headers):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": sort, "Content-Length": len(raw), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(raw)

    def do(self):  # noqa: C901  (one case a path)
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode()
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        match path.strip("/").split("/"):
            case ["status", code]:
                self.send({"said": code}, int(code))
            case ["list"]:
                self.send([1, 2])
            case ["results"]:
                self.send({"count": 2, "results": ["a", "b"]})
            case ["text"]:
                self.send("grüße".encode("latin-1"), sort="text/plain; charset=latin-1")
            case ["odd"]:
                self.send(b"{no json", sort="application/json; charset=martian")
            case ["to", port]:
                self.send(b"", 302, Location=f"http://127.0.0.1:{port}/echo")
            case ["file"]:
                self.send(b"", 302, Location="file:///etc/hostname")
            case ["around"]:
                self.send(b"", 302, Location="/around")
            case ["wait"]:
                self.server.over.wait(20)
            case ["drip"]:
                self.drip()
            case ["cut"]:
                self.send_response(200)
                self.send_header("Content-Length", "100")
                self.end_headers()
                self.wfile.write(b"part")
                self.close_connection = True
            case ["long"]:
                self.send(b"x" * 5000, sort="text/plain")
            case _:
                headers = {name.lower(): value for name, value in self.headers.items()}
                self.send({"method": self.command, "path": path, "query": query, "headers": headers, "body": body})

    def drip(self):
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        for _ in range(100):
            if self.server.over.wait(0.02):
                return
            try:
                self.wfile.write(b"x")
            except OSError:
                return

    do_GET = do_POST = do_DELETE = do  # noqa: N815  (the names that http.server asks for)


def serving():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.over = threading.Event()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    one = serving()
    yield one
    one.over.set()
    one.shutdown()
    one.server_close()


@pytest.fixture
def url(server):
    return f"http://127.0.0.1:{server.server_port}"


def asking(**config):
    return tool("http", kind="http", config=config)


def test_a_request_combines_config_and_inputs(url):
    call = asking(url=f"{url}/search?a=1", params={"b": 2, "c": "x y"}, headers={"X-One": "1", "X-Two": "2"})
    echoed = call(params={"b": ["3", "4"], "d": None}, headers={"X-Two": "3"})["json"]
    assert (echoed["method"], echoed["path"]) == ("GET", "/search")
    assert echoed["query"] == {"a": ["1"], "b": ["3", "4"], "c": ["x y"]}
    assert (echoed["headers"]["x-one"], echoed["headers"]["x-two"]) == ("1", "3")
    assert call(url=f"{url}/other", method="delete")["json"]["method"] == "DELETE"


@pytest.mark.parametrize(
    ("given", "body", "sort"),
    [
        ({"json": {"a": [1]}}, '{"a": [1]}', "application/json"),
        ({"json": {}, "headers": {"content-type": "application/x"}}, "{}", "application/x"),
        ({"body": "grüße"}, "grüße", "text/plain; charset=utf-8"),
        ({"body": {"a": "1 2", "b": ["x", "y"]}}, "a=1+2&b=x&b=y", "application/x-www-form-urlencoded"),
        ({"body": b"raw"}, "raw", "application/octet-stream"),
    ],
)
def test_a_request_with_a_body_is_a_post(url, given, body, sort):
    runtime = asking(url=f"{url}/echo")(**given)["json"]
    assert (runtime["method"], runtime["body"], runtime["headers"]["content-type"]) == ("POST", body, sort)


def test_the_result_has_the_keys_of_every_tool(url):
    assert asking(url=f"{url}/list")() == {
        "status": 200, "json": [1, 2], "text": "[1, 2]", "items": [1, 2], "result": [1, 2], "error": None,
    }  # fmt: skip
    assert asking(url=f"{url}/results")()["items"] == ["a", "b"]
    runtime = asking(url=f"{url}/text")()
    assert (runtime["json"], runtime["text"], runtime["result"], runtime["items"]) == (None, "grüße", "grüße", None)
    assert asking(url=f"{url}/odd")()["text"] == "{no json"


@pytest.mark.parametrize("status", [404, 429, 500])
def test_a_status_is_an_error_only_on_request(url, status):
    runtime = asking(url=f"{url}/status/{status}")()
    assert (runtime["status"], runtime["json"], runtime["error"]) == (status, {"said": str(status)}, None)
    strict = asking(url=f"{url}/status/{status}", raise_for_status=True)()
    assert strict["status"] == status
    assert find_failure(strict).startswith(f"HTTP {status}")


def test_the_address_may_be_in_the_impl_or_in_the_inputs(url):
    assert tool(f"{url}/a", kind="http")()["json"]["path"] == "/a"
    graph = asking()(url=f"{url}/ä b?q=cats and dogs")["json"]
    assert (graph["path"], graph["query"]) == ("/%C3%A4%20b", {"q": ["cats and dogs"]})


def test_an_unreachable_server_is_an_error(server, url):
    server.shutdown()
    server.server_close()
    runtime = asking(url=f"{url}/x?api_key=s3cr3t-1")()
    assert runtime["status"] is None
    assert runtime["error"].startswith(f"cannot reach {url.removeprefix('http://')}/x: ")
    assert "s3cr3t-1" not in runtime["error"]


@pytest.mark.parametrize("path", ["wait", "drip"])
def test_a_late_answer_is_an_error(url, path):
    began = time.monotonic()
    assert "took longer than 0.2 s" in asking(url=f"{url}/{path}", timeout=0.2)()["error"]
    assert time.monotonic() - began < 10  # far less than the server would take


def test_a_tool_s_own_timeout_ends_a_request(url):
    call = tool("http", kind="http", config={"url": f"{url}/wait"}, timeout=0.2)
    assert "took longer than 0.2 s" in call()["error"]


def test_an_incomplete_or_endless_answer_is_an_error(url, monkeypatch):
    assert "broke off" in asking(url=f"{url}/cut")()["error"]
    monkeypatch.setattr(http, "MOST_BYTES", 1000)
    assert "longer than 1000 bytes" in asking(url=f"{url}/long")()["error"]


def test_a_redirect_to_another_host_sends_no_secret(server, url):
    other = serving()
    try:
        headers = {"Authorization": "Bearer abc-4711", "X-Api-Key": "def-4712", "Cookie": "a=ghi-4713", "Accept": "x/y"}
        runtime = asking(url=f"{url}/to/{other.server_port}", headers=headers)()["json"]["headers"]
        assert not {"authorization", "x-api-key", "cookie"} & set(runtime)
        assert runtime["accept"] == "x/y"
        near = asking(url=f"{url}/to/{server.server_port}", headers=headers)()["json"]["headers"]
        assert near["x-api-key"] == "def-4712"
    finally:
        other.shutdown()
        other.server_close()


def test_a_redirect_leads_to_no_file_and_not_in_a_loop(url):
    assert "302" in asking(url=f"{url}/file")()["error"]
    assert asking(url=f"{url}/around")()["error"]


def test_secrets_in_a_request_are_masked_from_then_on(url):
    headers = {
        "Authorization": "Bearer abc-4711",
        "X-Api-Key": "def-4712",
        "Cookie": "a=ghi-4713",
        "X-Plain": "jkl-4714",
    }
    call = asking(url=f"{url.replace('//', '//ann:pass-4715@')}/echo?token=mno-4716", headers=headers)
    del headers["Authorization"]
    echoed = call(params={"access_key": "pqr-4717"}, json={"password": "stu-4718"})["json"]
    for secret in ("abc-4711", "def-4712", "ghi-4713", "pass-4715", "mno-4716", "pqr-4717", "stu-4718"):
        assert secret not in mask_text(f"said {secret}")
    assert mask_text("jkl-4714") == "jkl-4714"
    assert echoed["headers"]["authorization"] == "Bearer abc-4711"  # what is hidden is sent all the same


def test_credentials_in_the_url_are_sent_as_basic_auth(url):
    runtime = asking(url=f"{url.replace('//', '//ann:p%40ss-4715@')}/echo")()["json"]
    assert runtime["headers"]["authorization"] == "Basic " + base64.b64encode(b"ann:p@ss-4715").decode()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"url": "file:///etc/passwd"}, "its `url` is not valid"),
        ({"url": "ftp://host/x"}, "its `url` is not valid"),
        ({"url": "host/x"}, "its `url` is not valid"),
        ({"url": "http://"}, "its `url` is not valid"),
        ({"url": "http://a:99999/"}, "its `url` is not valid"),
        ({"url": "http://a b/"}, "its `url` is not valid"),
        ({"url": "http://a\r\nHost: b/"}, "its `url` cannot be one"),
        ({"url": "http://a/\0"}, "its `url` cannot be one"),
        ({"url": 5}, "its `url` cannot be one"),
        ({"urll": "http://a/"}, "'urll' is not a part of a request"),
        ({"headers": ["a"]}, "`headers` is a list"),
        ({"params": "a=b"}, "`params` is a str"),
        ({"headers": {"X-A": "b\r\nX-C: d"}}, "a header cannot be sent"),
        ({"headers": {"X A": "b"}}, "a header cannot be sent"),
        ({"method": "GET /x"}, "'GET /x' is not a method"),
        ({"json": {}, "body": ""}, "it has `json` and `body`"),
        ({"timeout": 0}, "its timeout is '0'"),
        ({"timeout": "5"}, "its timeout is '5'"),
        ({"timeout": True}, "its timeout is 'True'"),
    ],
)
def test_an_invalid_request_is_reported_at_the_start_and_at_the_call(config, said):
    problem = wrong("http", kind="http", config=config)
    assert problem.code == "R163"
    assert said in problem.what
    with pytest.raises(ExecutionError) as caught:
        asking(url="http://127.0.0.1:9/")(**config)
    assert {row.code for row in caught.value.problems} == {"X353"}
    assert said in str(caught.value)


def test_a_problem_contains_no_password():
    problem = wrong("http", kind="http", config={"url": "ftp://ann:pass-4715@host/x?token=abc-4711"})
    assert "pass-4715" not in str(problem)
    assert "abc-4711" not in str(problem)
