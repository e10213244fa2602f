"""What the documents promise about tests and packages is there."""

import json
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[2]


def test_requirements_name_existing_tests():
    missing = []
    for room, path, name in re.findall(r"`([\w-]+)/([\w/]+\.\w+)::(\w+)`", (TOP / "docs/requirements.md").read_text()):
        file = TOP / "tests" / room / path
        if not file.exists() or not re.search(r"\b%s\b" % name, file.read_text()):
            missing.append("%s/%s::%s" % (room, path, name))
    assert not missing


def test_requirements_have_ids_of_their_own_and_an_answer():
    rows = re.findall(r"^\| (R-\d{3}) \| (.*) \| (.*) \|$", (TOP / "docs/requirements.md").read_text(), re.M)
    ids = [row[0] for row in rows]
    assert len(ids) > 30 and len(set(ids)) == len(ids)
    for name, _, shown in rows:
        assert "`" in shown or "not yet" in shown, name


def test_every_package_is_explained():
    text = (TOP / "scripts/setup").read_text()
    packages = " ".join(re.sub(r"#.*", "", block) for block in re.findall(r"^\w+=\(([^)]*)\)", text, re.M)).split()
    known = set(re.findall(r"[\w.+-]+", (TOP / "docs/dependencies.md").read_text()))
    assert len(packages) > 20
    assert not set(packages) - known


def settings_of_the_daemon():
    """Names as in the file: what daemon_config.cpp reads."""
    text = (TOP / "clusterctl/daemon_config.cpp").read_text()
    found = set()
    for section, keys in re.findall(r'Section \w+\(\s*document,\s*"(\w*)",\s*\{([^}]*)\}', text):
        found |= {section + "." + key if section else key for key in re.findall(r'"(\w+)"', keys)}
    sections = {name.split(".")[0] for name in found if "." in name}
    return found - sections


def test_every_setting_of_the_daemon_is_explained():
    known = settings_of_the_daemon()
    assert len(known) > 12
    explained = set(re.findall(r"^\| `([a-z_.]+)` \| ", (TOP / "docs/operations.md").read_text(), re.M))
    assert known <= explained, known - explained


def test_the_example_configuration_holds_only_settings():
    known = settings_of_the_daemon()
    section = ""
    for line in (TOP / "packaging/clusterctl.yml").read_text().splitlines():
        match = re.match(r"^( *)(\w+):(.*)$", line)
        if not match:
            continue
        name = section + match[2] if match[1] else match[2]
        if not match[1] and not match[3].strip():
            section = name + "."
            continue
        assert name in known, line


def test_every_placement_code_is_explained():
    text = (TOP / "docs/placement.md").read_text()
    codes = set()
    for file in ("placement.cpp", "placement_vip.cpp"):
        codes |= set(re.findall(r'out\.(?:refuse|warn)\(\s*"(\w+)"', (TOP / "clusterctl/fleet" / file).read_text()))
    assert len(codes) > 20
    assert not {code for code in codes if "`%s`" % code not in text}


def test_every_reference_of_the_interface_description_leads_somewhere():
    document = json.loads((TOP / "clusterctl/api/openapi.json").read_text())

    def references(value):
        if isinstance(value, dict):
            yield from [value["$ref"]] if "$ref" in value else []
            value = list(value.values())
        for item in value if isinstance(value, list) else []:
            yield from references(item)

    found = set(references(document))
    assert len(found) > 10
    for reference in found:
        place = document
        for part in reference.removeprefix("#/").split("/"):
            assert part in place, reference
            place = place[part]


def test_documents_name_files_that_exist():
    missing = []
    files = [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").rglob("*.md"))]
    for file in files:
        text = re.sub(r"`[\w-]+/[\w/]+\.\w+::\w+`", "", file.read_text())  # names of tests: see above
        for path in re.findall(r"\]\(([^)#:]+)\)", text):
            if not (file.parent / path).exists():
                missing.append((file.name, path))
        for path in re.findall(r"(?<![\w/.~<>-])((?:docs|scripts|tests|roles|playbooks|packaging|inventory|cmake)/[\w./-]*\w)(?![\w<*/-])", text):
            if not (TOP / path).exists():
                missing.append((file.name, path))
    assert not missing


def test_the_kinds_of_events_are_those_of_the_sources():
    kinds = set()
    for room in ("controller", "job", "fleet"):
        for path in sorted((TOP / "clusterctl" / room).rglob("*.cpp")):
            kinds |= set(re.findall(r'"((?:node|job|token|monitor|cluster|globals|daemon)\.[a-z_]+)"', path.read_text()))
    described = json.loads((TOP / "clusterctl/api/openapi.json").read_text())["components"]["schemas"]["Event"]["properties"]["type"]["enum"]
    told = (TOP / "docs/rest.md").read_text().split("**Event**: ")
    assert len(told) == 2 and set(re.search(r"types `([^`]*)`", told[1])[1].split()) == set(described) == kinds
