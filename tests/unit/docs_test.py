"""What the documents promise about tests and packages is there."""

import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[2]


def test_requirements_name_existing_tests():
    missing = []
    for room, path, name in re.findall(r"`(api|unit)/([\w/]+\.\w+)::(\w+)`", (TOP / "docs/requirements.md").read_text()):
        file = TOP / "tests" / room / path
        if not file.exists() or not re.search(r"\b%s\b" % name, file.read_text()):
            missing.append("%s/%s::%s" % (room, path, name))
    assert not missing


def test_requirements_have_ids_of_their_own_and_an_answer():
    rows = re.findall(r"^\| (R-\d{3}) \| (.*) \| (.*) \|$", (TOP / "docs/requirements.md").read_text(), re.M)
    ids = [row[0] for row in rows]
    assert len(ids) > 30 and sorted(set(ids)) == ids
    for name, _, shown in rows:
        assert "`" in shown or "not yet" in shown, name


def test_every_package_is_explained():
    text = (TOP / "scripts/setup").read_text()
    packages = " ".join(re.sub(r"#.*", "", block) for block in re.findall(r"^\w+=\(([^)]*)\)", text, re.M)).split()
    known = set(re.findall(r"[\w.+-]+", (TOP / "docs/dependencies.md").read_text()))
    assert len(packages) > 20
    assert not set(packages) - known
