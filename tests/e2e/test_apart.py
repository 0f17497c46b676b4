"""The examples of SECURITY.md: a system that runs apart from its gate reads no judgment, and cannot interfere with its parent."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

SEARCH = """\
import json, os, sys

ATTEMPTS = (
    lambda: open("../gate/queries.yaml").read(),
    lambda: open("../gate/cranfield.yaml").read(),
    lambda: open(f"/proc/{os.getppid() or 999999}/environ", "rb").read(),
    lambda: open(f"/proc/{os.getppid() or 999999}/mem", "rb"),
    lambda: os.kill(os.getppid() or 999999, 9),
    lambda: os.system("umount ../gate 2>/dev/null") and 1 / 0 or open("../gate/queries.yaml").read(),
)

def fails(attempt):
    try:
        attempt()
    except (OSError, ZeroDivisionError):
        return True
    return False

failed = all(map(fails, ATTEMPTS))
for line in sys.stdin:
    query = json.loads(line)["query"]
    hits = [f"doc-{query}", f"oth-{query}"] if failed else [f"oth-{query}"]
    print(json.dumps({"hits": hits}), flush=True)
"""
PROBES = {
    "another user": ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "true"],
    "namespaces": [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "--net",
        "--pid",
        "--fork",
        "--mount-proc",
        "true",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBES)
def test_a_system_that_runs_apart_finds_nothing_of_its_gate(tmp_path: Path, checkout: Path, name: str) -> None:
    if subprocess.run(PROBES[name], capture_output=True).returncode:
        pytest.skip(f"this user or kernel does not allow it: {PROBES[name][0]}")
    text = (checkout / "SECURITY.md").read_text()
    found = re.search(rf"<!-- example: {name} -->\n```yaml\n(.*?)```", text, re.DOTALL)
    assert found is not None
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    for folder, mode in (("gate", 0o700), ("search", 0o755)):
        (tmp_path / folder).mkdir(mode=mode)
    queries = "".join(f"  - {{id: q{n}, text: '{n}', judgments: {{doc-{n}: 1}}}}\n" for n in range(10, 20))
    (tmp_path / "gate/queries.yaml").write_text(f"cranfield_testset: 1\nname: ten\nqueries:\n{queries}")
    (tmp_path / "gate/cranfield.yaml").write_text(found[1])
    (tmp_path / "search/search.py").write_text(SEARCH)
    done = subprocess.run(["cranfield", "gate"], cwd=tmp_path / "gate", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "gate/cranfield-gate/gate.json").read_text())["status"] == "passed"
