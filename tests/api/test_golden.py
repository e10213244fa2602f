"""Every command's help, output, JSON, refusal and completion, as they are: tests/api/golden/README.md says how to add and to change one."""

import concurrent.futures
import difflib
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

import pytest
import yaml

from harness import BINARY, Daemon

GOLDEN = pathlib.Path(__file__).parent / "golden"
HOW = ("\nA new command: give it an entry in tests/api/golden/cases.yml. Then, or when the change is meant:\n"
       "  /usr/bin/python3 -m pytest -q tests/api/test_golden.py --update-golden\nand read what it writes.")
KEYS = {"show", "json", "refuse", "complete"}


def cases():
    return yaml.safe_load((GOLDEN / "cases.yml").read_text())


def file_of(path):
    return GOLDEN / ((path.replace(" ", "-") or "clusterctl") + ".txt")


def tree():
    """The paths of all commands, from the program itself."""
    out = subprocess.run([str(BINARY), "__complete", "--tree"], capture_output=True, text=True, timeout=30, check=True).stdout
    return ["", "serve"] + out.splitlines()


def shape(value, at=""):
    """The members of a document and their types: what scripts rely on, without the values."""
    if isinstance(value, dict):
        return {line for key, member in value.items() for line in shape(member, "%s.%s" % (at, key))} or {at + ": {}"}
    if isinstance(value, list):
        return {line for member in value for line in shape(member, at + "[]")} or {at + ": []"}
    return {"%s: %s" % (at or ".", {str: "text", bool: "yes or no", int: "number", float: "number", type(None): "null"}[type(value)])}


class Recorder:
    def __init__(self, daemon):
        self.daemon = daemon
        self.names = {node["id"]: node["name"] for node in daemon.get("/v1/nodes").ok()["nodes"]}
        self.version = daemon.get("/v1/version").ok()["version"]
        self.ulids = {}

    def plain(self, text, times=True):
        """The same text with fixed words, of the same length where that can be, for what is different in every run."""
        for node_id, name in self.names.items():
            text = text.replace(node_id, ("id" + name).ljust(12, "0"))
        text = re.sub(r"\b01[0-9a-z]{24}\b", lambda m: self.ulids.setdefault(m[0], ("01job%d" % (len(self.ulids) + 1)).ljust(26, "0")), text)
        text = text.replace(str(self.daemon.directory), "<DIR>").replace(self.version, "<VERSION>")
        text = re.sub(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d", r"2026-01-01\g<1>00:00:00", text)
        text = re.sub(r"00:00:00\.\d{3}Z", "00:00:00.000Z", text)
        text = re.sub(r"uid:\d+", "uid:0", text)
        text = re.sub(r"(ansible: +|playbooks: +)\S.*", r"\1<VERSION>", text)
        text = re.sub(r"(Id: +)\S+", r"\1<ID>", text)
        text = re.sub(r"\b[0-9a-f]{64}\b", "<SHA256>", text)
        if not times:
            return text
        # How long something took decides how wide a column is.
        timed = re.sub(r"\b(\d+h)?(\d+m)?\d+s\b|\b\d+ms\b", "0s", text)
        return re.sub(r"(?<=\S) {2,}", "  ", timed) if "TOOK" in text or "BUSY" in text or timed != text else text

    def run(self, line, *more):
        words = shlex.split(line.format(dir=self.daemon.directory))
        env = {}
        while words and re.match(r"[A-Z_]+=", words[0]):
            name, value = words.pop(0).split("=", 1)
            env[name] = value
        return self.daemon.cli(*words, *more, env=env)

    def spoken(self, line, done, times=True):
        settings = "".join(re.findall(r"^(?:[A-Z_]+=\S* )*", line))
        text = "$ %sclusterctl %s\n%s" % (settings, line[len(settings):], done.stdout)
        if done.stdout and not done.stdout.endswith("\n"):
            text += "\n"
        text += "".join("! %s\n" % said for said in done.stderr.splitlines())
        return self.plain(text + ("[exit %d]\n" % done.returncode if done.returncode else ""), times) + "\n"

    def transcripts(self, known):
        # Help and completion change nothing: they are asked side by side, of the fleet as it is at the beginning.
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            helps = pool.map(lambda path: self.daemon.cli(*path.split(), "--help"), known)
            tabs = pool.map(lambda line: self.daemon.cli("__complete", *line.split(" ")), [line for case in known.values() for line in case["complete"]])
            helps, tabs = list(helps), list(tabs)
        for (path, case), shown in zip(known.items(), helps):
            assert shown.returncode == 0 and not shown.stderr, (path, shown)
            out = self.spoken((path + " --help").strip(), shown, times=False) + self.answers(case)
            for line in case["complete"]:
                done = tabs.pop(0)
                assert done.returncode == 0 and not done.stderr, (line, done)
                out += self.plain("$ clusterctl %s<Tab>\n%s\n" % (line, done.stdout.replace("\t", "  ")), times=False)
            yield path, out

    def answers(self, case):
        out = ""
        for line in case.get("show", []):
            done = self.run(line)
            out += self.spoken(line, done)
        for line in case.get("json", []):
            out += self.document(line)
        for line in case.get("refuse", []):
            done = self.run(line)
            assert done.returncode in (64, 65, 69, 70, 77, 1, 3), "clusterctl %s was not refused: %s" % (line, done)
            out += self.spoken(line, done)
        return out

    def document(self, line):
        done = self.run(line, "-o", "json")
        value = json.loads(done.stdout)
        again = yaml.safe_load(self.run(line, "-o", "yaml").stdout)
        assert shape(again) == shape(value), "clusterctl %s: YAML and JSON are not the same" % line
        # Names of nodes and services are keys in places: their number is not the program's.
        return self.plain("$ clusterctl %s -o json\n%s\n\n" % (line, "\n".join(sorted(shape(value)))))


@pytest.fixture(scope="module")
def recorder():
    """A fleet in which everything has been seen once; made once for all commands."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="d"))
    daemon = Daemon(directory)
    try:
        daemon.config["cluster_name"] = "golden"
        daemon.start()
        for name in ("m1", "m2", "m3"):
            daemon.add(name, "service-master", addr="192.0.2.1" + name[1:])
        daemon.add("w1", "service-worker", addr="192.0.2.21", labels={"rack": "r1"})
        daemon.add("w2", "service-worker", addr="192.0.2.22")
        daemon.add("n1", "service-worker", addr="192.0.2.31", labels={"rack": "r2", "old": "yes"})
        daemon.add("n2", addr="192.0.2.32")
        daemon.send("PATCH", "/v1/globals", {"vars": {"service_vip": "192.0.2.100"}}).ok()
        daemon.commission("m1", "m2", "m3", "w1")
        daemon.double.orders(site="fail-host:w2:docker:no space left on device")
        daemon.commission("w2", state="failed")
        daemon.double.orders()
        assert daemon.cli("context", "set", "lab", "--server", "unix:/run/lab.sock", "--server", "http://lab.example.com:9007").returncode == 0
        yield Recorder(daemon)
    finally:
        daemon.end()
        shutil.rmtree(directory, ignore_errors=True)


def test_every_command_has_its_case_and_its_file():
    known, there = cases(), tree()
    missing = [path or "clusterctl" for path in there if path not in known]
    assert not missing, "no entry in tests/api/golden/cases.yml: %s%s" % (", ".join(missing), HOW)
    gone = [path for path in known if path not in there]
    assert not gone, "tests/api/golden/cases.yml has what is no command: %s" % gone
    assert {path.name for path in GOLDEN.glob("*.txt")} <= {file_of(path).name for path in known}
    for path, case in known.items():
        assert set(case) <= KEYS, path
        assert case.get("refuse") or path in ("inventory export",), "%s: give a refusal" % path
        assert case.get("complete"), "%s: give a completion" % path


def test_every_command_answers_as_recorded(recorder, request):
    update = request.config.getoption("--update-golden")
    wrong = []
    for path, now in recorder.transcripts(cases()):
        file = file_of(path)
        if update:
            file.write_text(now)
            continue
        then = file.read_text() if file.exists() else ""
        if now != then:
            diff = difflib.unified_diff(then.splitlines(), now.splitlines(), "recorded", "now", lineterm="", n=1)
            wrong.append("\n".join(["", "clusterctl " + path] + list(diff)[:40]))
    assert not wrong, "%d commands answer otherwise than tests/api/golden has it:%s%s" % (len(wrong), "\n".join(wrong), HOW)
    if update:
        pytest.skip("wrote tests/api/golden: read it")

