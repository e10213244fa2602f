"""docs/errors.md has every code that a client can meet, with its statuses, and no other."""

import collections
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ["access", "api", "base", "controller", "job", "plan", "fleet", "ansible", "store", "notify"]
WORD = r'"([a-z]+(?:_[a-z0-9]+)*)"'
# What these say reaches nobody by its code: it is read at start, or becomes the text of a failed run. Nor does what contiv's routes say
# (api/compat): those answer text.
TEXT_ONLY = ["access/authority.cpp", "access/certificate.cpp", "access/private_file.cpp", "api/tls.cpp", "ansible/render.cpp", "ansible/events.cpp", "ansible/facts.cpp", "ansible/hints.cpp", "ansible/private_key.cpp", "ansible/ssh_args.cpp", "api/listener.cpp",
             "base/error.cpp", "base/files.cpp", "base/process.cpp", "base/yaml.cpp", "base/yaml_scalars.cpp", "notify/receiver.cpp",
             "store/sqlite_store.cpp", "store/sqlite_store_open.cpp", "notify/ledger.cpp"]
AT_START = {"damaged", "second_daemon"}  # of what else can be met later as well
STATUS = dict(re.findall(r'Row\{Code::k(\w+), "\w+", (\d+)', (TOP / "clusterctl/base/error.cpp").read_text()))
REASON = "reason of a job"
WARNING = "warning"
# Those that no pattern below finds in the sources, and where they come from.
ELSEWHERE = {
    "bad_state": ("400", 'known(state, job::state_words(), "state")'), "bad_kind": ("400", 'known(kind, plan::kKinds, "kind")'),
    "bad_lifecycle": ("400", 'known_word<fleet::Lifecycle>(f.lifecycle, "lifecycle")'), "bad_presence": ("400", 'known_word<fleet::Presence>(f.presence, "presence")'),
    "internal": ("500", '"internal"'), "CONTROLLER_ISOLATED": (WARNING, '"CONTROLLER_ISOLATED"'), "Disappeared": (WARNING, 'add(node, "Disappeared"'),
    "Unhealthy": (WARNING, 'add(node, "Unhealthy"'), "node_failed": (REASON, '"node_failed"'), "check_failed": (REASON, '"check_failed"'),
    "interrupted": (REASON, '"interrupted"'), "timeout": (REASON, '"timeout"'), "silence_timeout": (REASON, '"silence_timeout"'),
    "observe_failed": (REASON, '"observe_failed"'), "quorum": (REASON, '"quorum"'), "budget": (REASON, '"budget"'), "own_host": (REASON, '"own_host"'),
}


def codes_of_text(text):
    """(code, status or what it is) of one source file."""
    for code, word in re.findall(r"Code::k(\w+),\s*" + WORD, text):
        yield word, STATUS[code]
    for code, one, other in re.findall(r"Code::k(\w+),\s*Problem\{\s*(?:\w+ \? " + WORD + r"\s*: )?" + WORD, text):
        yield from ((word, STATUS[code]) for word in (one, other) if word)
    for status, word in re.findall(r"\b(?:refuse|problem_response)\((\d{3}),\s*" + WORD, text):
        yield word, status
    if "Code::kUnauthenticated, std::move(reason)" in text:
        yield from ((word, "401") for word in re.findall(r"\brefuse\(" + WORD, text))
    if "bad(std::string reason" in text:
        yield from ((word, "400") for word in re.findall(r"\bbad\(" + WORD, text))
    for word in re.findall(r"\b(?:give_up\(|job\.reason = )\s*" + WORD, text):
        yield word, REASON
    for word in re.findall(r"\bwarn\(" + WORD + ", node", text):
        yield word, WARNING
    for word in re.findall(r"warnings\.push_back\(\s*\{" + WORD, text):
        yield word, WARNING


def codes_of_sources():
    found = collections.defaultdict(set)
    for room in ROOMS:
        for path in sorted((TOP / "clusterctl" / room).rglob("*")):
            name = path.relative_to(TOP / "clusterctl").as_posix()
            if path.suffix in (".h", ".cpp") and name not in TEXT_ONLY and not name.startswith("api/compat/"):
                for word, status in codes_of_text(re.sub(r"(?<![:\"])//[^\n]*", "", path.read_text())):
                    found[word].add(status)
    for statuses in found.values():
        statuses.discard("500")  # the client is told `internal`
    return {word: statuses for word, statuses in found.items() if statuses and word not in AT_START}


def codes_of_page(text):
    """{code: statuses}; the tables without a status say what their codes are by their title."""
    found, kind = collections.defaultdict(set), None
    for line in text.splitlines():
        if line.startswith("## "):
            kind = REASON if "job ended" in line else WARNING if line.startswith("## Warnings") else None
        row = re.match(r"\| `(\w+)` \| ([\d, ]+) \| \S", line)
        if row and kind is None:
            assert row[1] not in found, row[1] + " stands twice"
            found[row[1]] = set(row[2].split(", "))
        elif kind and (row := re.match(r"\| `(\w+)` \| \S", line)):
            found[row[1]].add(kind)
    return found


PAGE = codes_of_page((TOP / "docs/errors.md").read_text())
PLACEMENT = set(re.findall(r"^\| `(\w+)` \|", (TOP / "docs/placement.md").read_text(), re.M))


def test_every_code_of_the_sources_is_on_the_page():
    sources = codes_of_sources()
    assert len(sources) > 150
    missing = [word for word in sources if word not in PAGE and word not in PLACEMENT]
    assert not missing


def test_every_code_on_the_page_is_in_the_sources():
    sources = codes_of_sources()
    text = "\n".join(path.read_text() for path in sorted((TOP / "clusterctl").rglob("*.cpp")))
    for word in PAGE:
        if word in ELSEWHERE:
            assert ELSEWHERE[word][1] in text, word
        else:
            assert word in sources or re.search(r'\{\s*"%s",' % word, text), word


def test_the_statuses_are_those_of_the_sources():
    for word, statuses in codes_of_sources().items():
        numbers = {status for status in statuses if status.isdigit()}
        said = {status for status in PAGE.get(word, set()) if status.isdigit()}
        if word == "log_expired":  # says its own status
            assert said == {"410"}
        elif word in PAGE:
            assert numbers <= said, (word, numbers, said)
            assert said <= numbers or not numbers or word in ("quorum", "bad_join_token"), (word, numbers, said)


def test_the_extraction_sees_each_form():
    text = """
      return fail(Code::kConflict, "one", "…");  problems.add(Code::kInvalid,
             Problem{known ? "two" : "three", "…"});
      return refuse(431, "four", "…"); bad(std::string reason) {} return bad("five",\n "…"); give_up(\n "six", "…"); warn("seven", node, "…");
      plan_.warnings.push_back(\n {"eight", "…"});"""
    assert dict(codes_of_text(text)) == {"one": "409", "two": "400", "three": "400", "four": "431", "five": "400", "six": REASON, "seven": WARNING, "eight": WARNING}
