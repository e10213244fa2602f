#!/usr/bin/python3
"""The tests of roles and playbooks.

  tests/roles/run.py            the fast ones: plugins, specs, lint
  tests/roles/run.py --lab      also the scenarios on lab nodes
  tests/roles/run.py … -- ARG   further arguments for pytest
CLUSTERCTL_TEST_CYCLES=3 takes nodes away and brings them back three times.
"""

import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def main():
    mine, more = sys.argv[1:], []
    if "--" in mine:
        more = mine[mine.index("--") + 1:]
        mine = mine[:mine.index("--")]
    if set(mine) - {"--lab"}:
        sys.exit(__doc__)
    suites = [("plugins", HERE.parent / "unit-ansible"), ("static", HERE / "test_static.py")]
    suites += [("lab " + path.stem[len("test_"):], path) for path in sorted(HERE.glob("test_lab*.py"))] if "--lab" in mine else []
    failed = []
    for name, path in suites:
        began = time.time()
        code = subprocess.run(["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(HERE / "pytest.ini"),
                               "--rootdir", str(HERE.parent), str(path), *more]).returncode
        print("roles: %s: %s, %.1f minutes" % (name, "passed" if code == 0 else "FAILED", (time.time() - began) / 60), flush=True)
        failed += [name] if code else []
    sys.exit("failed: " + ", ".join(failed) if failed else 0)


if __name__ == "__main__":
    main()
