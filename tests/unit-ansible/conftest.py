"""Loads our plugins by path: they are files, not an installed package."""

import importlib.util
import pathlib
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
PLUGINS = TOP / "playbooks" / "plugins"


def load(path, name=None):
    name = name or path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# Modules import their shared code as ansible.module_utils.<name>.
for shared in sorted((PLUGINS / "module_utils").glob("*.py")):
    load(shared, "ansible.module_utils." + shared.stem)


@pytest.fixture(scope="session")
def top():
    return TOP


@pytest.fixture(scope="session")
def plugin():
    return lambda kind, name: load(PLUGINS / kind / (name + ".py"), "%s_%s" % (kind, name))
