"""The rules of the house that a compiler does not check. Each rule is a function from a source tree to violations, and is itself
tested: it must find a planted violation and must be content with the real tree."""

import fnmatch
import pathlib
import re

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2] / "clusterctl"

# Dependencies point to a lower number, or to a room of the same number without a cycle. The command line is a client: it shares
# nothing with the daemon but `base`.
LAYERS = {"base": 0, "access": 1, "fleet": 1, "catalog": 1, "ansible": 1, "plan": 2, "run": 2, "store": 3, "job": 3, "monitor": 3, "notify": 3, "controller": 4, "api": 5}
CLIENT_LAYERS = {"base": 0, "access": 1, "client": 1, "inventory": 1, "cli": 2}

# Where the headers of a library may be included. A new library starts with a line here and one in docs/dependencies.md.
THIRD_PARTY = {
    "httplib.h": ["api/http_engine*", "api/httplib_*"],
    "curl/*": ["client/*", "notify/curl_transport.cpp"],
    "CLI/*": ["cli/*"],
    "yaml-cpp/*": ["base/yaml.cpp"],
    "sqlite3.h": ["store/sqlite_store*"],
    "openssl/*": ["access/*", "api/auth.cpp", "api/tls.cpp", "base/digest.cpp", "client/server_trust.cpp"],
    "spdlog/*": ["base/log.cpp"],
    "nlohmann/*": ["base/json.h"],
    "tl/*": ["base/error.h"],
    "fmt/*": ["*"],
}
SYSTEM = re.compile(r"(sys|netinet|net|arpa|linux|asm)/[\w.]+|(unistd|fcntl|ifaddrs|signal|poll|spawn|pwd|grp|dirent|netdb|strings|termios|sched|syslog"
                    r"|time|errno|string|stdlib|stdio|limits|pthread|locale|glob|ftw|getopt|dlfcn|execinfo)\.h")
STANDARD = re.compile(r"[a-z_]+")

# Rooms that only compute: no files, no threads, no clock, no chance.
PURE = ["fleet", "plan"]
IMPURE_HEADERS = ["fstream", "iostream", "cstdio", "filesystem", "thread", "mutex", "shared_mutex", "condition_variable", "future", "atomic", "random",
                  "ctime", "csignal", "*/*.h", "*.h"]
PURE_SYSTEM = ["arpa/inet.h", "netinet/in.h"]  # reading and writing addresses as text only computes
IMPURE_ROOMS_OF_BASE = ["base/files.h", "base/process.h", "base/log.h", "base/ids.h", "base/yaml.h", "base/annotations.h"]
IMPURE_WORDS = re.compile(r"::now\(|\bgetenv\(|\bsystem\(|\bpopen\(|\brand\(|\bsleep_for\b|\bsleep_until\b|\busleep\(|\bsocket\(|\bconnect\(")

SQL = re.compile(r"\b(SELECT .* FROM|INSERT (OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE|PRAGMA)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)


def sources(top):
    for path in sorted(top.rglob("*")):
        if path.suffix in (".h", ".cpp"):
            yield path.relative_to(top).as_posix(), path.read_text()


def includes(text):
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(1) if match[1] else match.start(2)) + 1, match[1], match[2]


def without_comments(text):
    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S))


def rooms(top):
    """{room: rooms it may include}, as the build declares them."""
    found = {}
    for name, arguments in re.findall(r"clusterctl_library\((\w+)([^)]*)\)", (top / "CMakeLists.txt").read_text()):
        words, mode = arguments.split(), None
        found[name] = []
        for word in words:
            mode = word if word in ("DEPS", "LIBS") else mode
            if mode == "DEPS" and word != "DEPS":
                found[name].append(word)
    return found


def declared_edges_point_down(top):
    declared = rooms(top)
    for room, deps in declared.items():
        layers = CLIENT_LAYERS if room in ("client", "inventory", "cli") else LAYERS
        if room not in layers:
            yield f"CMakeLists.txt: the room {room} has no place in the layers"
            continue
        for dep in deps:
            if dep not in layers or layers[dep] > layers[room]:
                yield f"CMakeLists.txt: {room} must not depend on {dep}"
            if room in reachable(declared, dep):
                yield f"CMakeLists.txt: {room} and {dep} depend on each other"


def reachable(declared, start):
    seen, todo = set(), [start]
    while todo:
        room = todo.pop()
        if room not in seen:
            seen.add(room)
            todo += declared.get(room, [])
    return seen


def includes_follow_the_edges(top):
    declared = rooms(top)
    for name, text in sources(top):
        room = name.split("/")[0] if "/" in name else None
        if room and room not in declared:
            yield f"{name}: the folder {room} is not declared in CMakeLists.txt"
            continue
        for line, ours, _ in includes(text):
            if not ours:
                continue
            if not (top / ours).is_file():
                yield f'{name}:{line}: "{ours}" is not a header of a room (write the path from clusterctl/)'
            elif room and ours.split("/")[0] not in [room, *declared[room]]:
                yield f"{name}:{line}: {room} must not include {ours}"


def libraries_stay_in_their_room(top):
    for name, text in sources(top):
        for line, _, header in includes(text):
            if not header or SYSTEM.fullmatch(header) or STANDARD.fullmatch(header):
                continue
            allowed = next((globs for library, globs in THIRD_PARTY.items() if fnmatch.fnmatchcase(header, library)), None)
            if allowed is None:
                yield f"{name}:{line}: <{header}> is of a library that no room owns"
            elif not any(fnmatch.fnmatchcase(name, glob) for glob in allowed):
                yield f"{name}:{line}: <{header}> may be included only in {', '.join(allowed)}"


def pure_rooms_compute_only(top):
    for name, text in sources(top):
        if name.split("/")[0] not in PURE:
            continue
        for line, ours, header in includes(text):
            if ours in IMPURE_ROOMS_OF_BASE:
                yield f"{name}:{line}: {ours} in a room without input and output"
            if header and header not in PURE_SYSTEM and not header.startswith("fmt/") and any(fnmatch.fnmatchcase(header, glob) for glob in IMPURE_HEADERS):
                yield f"{name}:{line}: <{header}> in a room without input and output, threads and clock"
        for number, line in enumerate(without_comments(text).split("\n"), 1):
            if IMPURE_WORDS.search(line):
                yield f"{name}:{number}: {IMPURE_WORDS.search(line)[0]} in a room without clock and environment"


def sql_stays_in_the_store(top):
    for name, text in sources(top):
        for number, line in enumerate(without_comments(text).split("\n"), 1):
            if not name.startswith("store/") and SQL.search(line):
                yield f"{name}:{number}: SQL outside the store"


def headers_introduce_themselves(top):
    for name, text in sources(top):
        if not name.endswith(".h"):
            continue
        if not text.startswith("//"):
            yield f"{name}: the header does not begin with what it is"
        if text.count("#pragma once") != 1:
            yield f"{name}: not exactly one #pragma once"


RULES = [declared_edges_point_down, includes_follow_the_edges, libraries_stay_in_their_room, pure_rooms_compute_only, sql_stays_in_the_store,
         headers_introduce_themselves]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule):
    violations = list(rule(TOP))
    assert not violations, "\n".join(violations)


def test_there_is_something_to_check():
    assert len(rooms(TOP)) >= 10
    assert len(list(sources(TOP))) >= 30


GOOD = {
    "CMakeLists.txt": "clusterctl_library(base LIBS fmt::fmt)\nclusterctl_library(fleet DEPS base)\nclusterctl_library(store DEPS base)\n"
                      "clusterctl_library(controller DEPS\n  store fleet base\n  LIBS x)\n",
    "base/error.h": "// Errors.\n#pragma once\n#include <string>\n#include <tl/expected.hpp>\n",
    "base/files.h": "// Files.\n#pragma once\n#include <sys/types.h>\n",
    "fleet/node.h": '// Nodes. No std::chrono::system_clock::now() here.\n#pragma once\n#include <fmt/format.h>\n#include "base/error.h"\n',
    "store/sqlite_store.cpp": '#include <sqlite3.h>\nauto a = "SELECT x FROM y";\n',
    "controller/controller.cpp": '#include "fleet/node.h"\n',
    "main.cpp": '#include "controller/controller.h"\n#include "fleet/node.h"\n',
    "controller/controller.h": "// Controls.\n#pragma once\n",
}

PLANTED = [
    (declared_edges_point_down, {"CMakeLists.txt": "clusterctl_library(base DEPS fleet)\nclusterctl_library(fleet)\n"}, "base must not depend on fleet"),
    (declared_edges_point_down, {"CMakeLists.txt": "clusterctl_library(job DEPS store)\nclusterctl_library(store DEPS job)\n"}, "depend on each other"),
    (declared_edges_point_down, {"CMakeLists.txt": "clusterctl_library(cli DEPS controller)\n"}, "cli must not depend on controller"),
    (declared_edges_point_down, {"CMakeLists.txt": "clusterctl_library(garage)\n"}, "no place in the layers"),
    (includes_follow_the_edges, {"fleet/node.h": '#include "store/store.h"\n', "store/store.h": ""}, "fleet/node.h:1: fleet must not include"),
    (includes_follow_the_edges, {"base/error.h": '\n  # include "fleet/node.h"\n'}, "base/error.h:2: base must not include"),
    (includes_follow_the_edges, {"store/sqlite_store.cpp": '#include "sqlite_store_db.h"\n'}, "not a header of a room"),
    (includes_follow_the_edges, {"garage/x.cpp": ""}, "not declared"),
    (libraries_stay_in_their_room, {"controller/controller.cpp": "#include <httplib.h>\n"}, "only in api/http_engine*"),
    (libraries_stay_in_their_room, {"store/memory_store.cpp": "#include <sqlite3.h>\n"}, "only in store/sqlite_store*"),
    (libraries_stay_in_their_room, {"fleet/node.h": "#include <nlohmann/json.hpp>\n"}, "only in base/json.h"),
    (libraries_stay_in_their_room, {"main.cpp": "#include <curl/curl.h>\n"}, "only in client/*"),
    (libraries_stay_in_their_room, {"base/error.h": "#include <boost/asio.hpp>\n"}, "no room owns"),
    (pure_rooms_compute_only, {"fleet/node.h": "#include <fstream>\n"}, "<fstream>"),
    (pure_rooms_compute_only, {"fleet/node.h": "#include <sys/stat.h>\n"}, "<sys/stat.h>"),
    (pure_rooms_compute_only, {"fleet/node.h": "#include <unistd.h>\n"}, "<unistd.h>"),
    (pure_rooms_compute_only, {"fleet/node.h": "#include <thread>\n"}, "<thread>"),
    (pure_rooms_compute_only, {"plan/plan.cpp": "int x;\nauto t = std::chrono::steady_clock::now();\n"}, "plan/plan.cpp:2: ::now("),
    (pure_rooms_compute_only, {"plan/plan.cpp": '#include "base/files.h"\n'}, "base/files.h"),
    (sql_stays_in_the_store, {"controller/controller.cpp": 'auto a = "DELETE FROM record";\n'}, "SQL outside"),
    (headers_introduce_themselves, {"fleet/node.h": "#pragma once\n"}, "does not begin"),
    (headers_introduce_themselves, {"fleet/node.h": "// Nodes.\n"}, "#pragma once"),
]


def plant(top, files):
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return top


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_good_tree_has_no_violation(rule, tmp_path):
    assert not list(rule(plant(tmp_path, GOOD)))


@pytest.mark.parametrize("rule, files, expected", PLANTED, ids=lambda value: value if isinstance(value, str) else None)
def test_a_planted_violation_is_found(rule, files, expected, tmp_path):
    violations = list(rule(plant(tmp_path, {**GOOD, **files})))
    assert any(expected in violation for violation in violations), violations


def test_every_rule_has_a_planted_violation():
    assert {rule for rule, _, _ in PLANTED} == set(RULES)


def test_no_loop_walks_over_a_snapshot_that_nobody_holds():
    """`for (… : c.state()->jobs)` lets the snapshot go before the first round."""
    loop = re.compile(r"for \([^;{]*: [^;{]*(state|fleet)\(\)->")
    assert loop.search("for (const auto& [id, job] : c.state()->jobs) {")
    files = [path for folder in (TOP, TOP.parent / "tests/unit") for path in folder.rglob("*.cpp")]
    assert len(files) > 100
    assert [path.name for path in files if loop.search(path.read_text())] == []
