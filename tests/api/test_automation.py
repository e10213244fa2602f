"""The examples of docs/automation.md, run as they stand; only the places of socket, token and port are those of the test."""

import json
import pathlib
import re
import subprocess

import pytest
import yaml

from harness import TOP
from test_metrics import metrics

PAGE = (TOP / "docs/automation.md").read_text()


def blocks(language):
    return re.findall(r"^```%s\n(.*?)^```$" % language, PAGE, re.M | re.S)


def here(daemon, text):
    for usual, ours in {"/run/clusterctl/clusterctl.sock": daemon.socket, "/var/lib/clusterctl/token": daemon.directory / "token",
                        "http://127.0.0.1:9007": "http://127.0.0.1:%d" % daemon.port}.items():
        text = text.replace(usual, str(ours))
    assert "/var/lib" not in text and "9007" not in text
    return text


def run(daemon, *command, **options):
    return subprocess.run(command, env=dict(daemon.environment(), ANSIBLE_LOCALHOST_WARNING="false", ANSIBLE_INVENTORY_UNPARSED_WARNING="false"), cwd=daemon.directory,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, **options)


def test_the_shell_examples(daemon):
    scripts = blocks("sh")
    assert len(scripts) > 6
    script = "set -euo pipefail\n" + "".join("echo '== %d'\n%s" % (i, here(daemon, text)) for i, text in enumerate(scripts))
    done = run(daemon, "bash", "-c", script)
    assert done.returncode == 0, done.stdout + done.stderr
    parts = [part.split("\n", 1)[1] for part in done.stdout.split("== ")[1:]]
    assert len(parts) == len(scripts)
    assert json.loads(parts[0])["api"] == 1
    assert len(parts[2].split()) == 4 and "check\n" in parts[3]
    assert parts[4] == "it is commissioned already\n" and parts[5] == '{"rack":"r7"}\n'
    assert parts[6] == "m1 Allocated\nm2 Allocated\nm3 Allocated\n"
    assert len(parts[7].splitlines()) == 5
    assert [n["name"] for n in daemon.get("/v1/nodes").ok()["nodes"]] == ["m1", "m2", "m3"]

    # Sent again with their keys: nothing is made a second time.
    again = here(daemon, scripts[1] + scripts[2] + scripts[3])
    done = run(daemon, "bash", "-c", "set -euo pipefail\n" + again.split("api -X POST $url/v1/jobs -d \"$(jq")[0] + again[again.index("job=$("):])
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(daemon.get("/v1/jobs").ok()["jobs"]) == 1 and len(daemon.get("/v1/nodes").ok()["nodes"]) == 3


def test_the_playbook_twice(daemon):
    for i in (1, 2, 3):
        daemon.add("m%d" % i, "service-master")
    daemon.send("PATCH", "/v1/globals", {"vars": {"service_vip": "192.0.2.100"}}).ok()
    daemon.commission("m1", "m2", "m3")
    (play,) = [text for text in blocks("yaml") if "hosts:" in text]
    path = daemon.directory / "add.yml"
    path.write_text(here(daemon, play).replace("delay: 2", "delay: 0.2"))
    first = run(daemon, "ansible-playbook", str(path))
    assert first.returncode == 0 and "changed=2" in first.stdout, first.stdout + first.stderr
    assert daemon.lifecycle("w1") == daemon.lifecycle("w2") == "Allocated"
    second = run(daemon, "ansible-playbook", str(path))
    assert second.returncode == 0 and "changed=0" in second.stdout, second.stdout + second.stderr
    assert len(daemon.get("/v1/jobs").ok()["jobs"]) == 2


def test_the_alerts_ask_for_what_there_is(cluster):
    now = metrics(cluster)
    (rules,) = blocks("promql")
    asked = re.findall(r"clusterctl_\w+", rules)
    assert len(asked) > 6
    for name in asked:
        labels = dict(re.findall(name + r"\{(\w+)=~?\"([\w|]+)\"\}", rules))
        for label, words in labels.items():
            for word in words.split("|"):
                assert any(metric == name and (label, word) in values for metric, values in now.values), (name, label, word)
        assert any(metric == name for metric, _ in now.values), name


def test_the_scrape_configuration_is_yaml():
    (config,) = [text for text in blocks("yaml") if "scrape_configs" in text]
    (job,) = yaml.safe_load(config)["scrape_configs"]
    assert job["static_configs"][0]["targets"] == ["127.0.0.1:9007"] and "metrics_path" not in job, "the default is /metrics"
