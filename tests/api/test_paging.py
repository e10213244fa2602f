"""Every list is read in pages by the same two words, and nothing is told twice or left out."""

import pytest



def pages(daemon, path, key, limit):
    """All rows, page by page; no page is longer than asked."""
    rows, after = [], ""
    for _ in range(1000):
        join = "&" if "?" in path else "?"
        answer = daemon.get("%s%slimit=%d%s" % (path, join, limit, "&after=" + after if after else "")).ok()
        assert len(answer[key]) <= limit
        rows += answer[key]
        if "next" not in answer:
            return rows
        assert len(answer[key]) == limit, "a page is full as long as there is more"
        assert answer["next"] != after
        after = answer["next"]
    raise AssertionError("there is no end")


@pytest.fixture
def full(workers):
    """Something in every list."""
    for i in range(5):
        workers.wait(workers.submit("check", nodes=["w%d" % (i % 4 + 1)])["id"])
        workers.send("POST", "/v1/plans", {"changes": {"globals": {"mtu": 9000 + i}}}).ok(201)
        workers.send("PATCH", "/v1/nodes/w1", {"spec": {"labels": {"round": str(i)}}}).ok()
    return workers


def test_pages_of_every_list_are_the_list(full):
    for path, key in (("/v1/nodes", "nodes"), ("/v1/nodes?host_group=service-worker", "nodes"), ("/v1/jobs", "jobs"), ("/v1/jobs?kind=check", "jobs"),
                      ("/v1/jobs?node=w1&state=succeeded", "jobs"), ("/v1/plans", "plans"), ("/v1/revisions", "revisions"), ("/v1/nodes/w1/history", "history"),
                      ("/v1/managers", "managers"), ("/v1/services", "services"), ("/v1/events", "events")):
        whole = full.get(path).ok()
        assert len(whole[key]) > 1 and "next" not in whole, path
        for limit in (1, 2, 3, len(whole[key]), 100):
            assert pages(full, path, key, limit) == whole[key], (path, limit)


def test_what_is_added_or_removed_meanwhile_moves_nothing(full):
    ids = [job["id"] for job in full.get("/v1/jobs").ok()["jobs"]]
    first = full.get("/v1/jobs?limit=2").ok()
    new = full.wait(full.submit("check", nodes=["m1"])["id"])
    rest = full.get("/v1/jobs?limit=1000&after=" + first["next"]).ok()
    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == ids
    assert full.get("/v1/jobs?limit=1").ok()["jobs"][0]["id"] == new["id"]
    page = full.get("/v1/nodes?limit=2").ok()
    full.add("a0", "")
    full.add("m20", "")
    names = [node["name"] for node in full.get("/v1/nodes?after=" + page["next"]).ok()["nodes"]]
    assert names[0] == "m20" and "a0" not in names
    full.ask("DELETE", "/v1/nodes/m20").ok(204)
    assert full.get("/v1/nodes?limit=1&after=m20").ok()["nodes"][0]["name"] == "m3", "the place stays, also when its node is gone"


def test_events_go_on_by_since_and_after_alike(full):
    page = full.get("/v1/events?limit=3").ok()
    assert full.get("/v1/events?limit=3&since=" + page["next"]).ok() == full.get("/v1/events?limit=3&after=" + page["next"]).ok()
    full.get("/v1/events?since=1&after=1").problem(400, "bad_query")
    assert page["last"] == full.get("/v1/events?limit=1").ok()["last"]


def test_the_command_line_follows_pages(full, tmp_path):
    """A limit beyond one page of the daemon."""
    done = full.cli("job", "ls", "-q", "--limit", "5000")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [job["id"] for job in full.get("/v1/jobs?limit=1000").ok()["jobs"]]
    assert full.cli("job", "ls", "-q", "--limit", "2").stdout.split() == done.stdout.split()[:2]
    assert full.cli("job", "ls", "--limit", "0").returncode == 64
