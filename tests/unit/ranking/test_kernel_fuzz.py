"""The C kernel on bytes nobody meant: built anew with sanitizers, for some seconds; `make fuzz` goes on for longer.

The wheel is tested where there are no sources to build from, and there is nothing of this to run there.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT / "tests" / "fuzz" / "corpus.py"


def test_the_inputs_to_begin_with_are_the_same_every_time(tmp_path):
    for name in ("once", "twice"):
        subprocess.run([sys.executable, CORPUS, tmp_path / name], check=True)
    files = sorted(path.name for path in (tmp_path / "once").iterdir())
    assert len(files) > 30
    for name in files:
        assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "twice" / name).read_bytes()


if (ROOT / "scripts" / "fuzz.sh").is_file():

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("seconds", "options"), [(8, []), (3, ["-DSCAN_PORTABLE"])], ids=["as built here", "as built without SSE2"]
    )
    def test_no_bytes_and_no_options_break_the_kernel(seconds, options):
        if not any(shutil.which(name) for name in ("clang", "gcc", "cc")):
            pytest.skip("no C compiler here (Debian: apt-get install clang libclang-rt-dev)")
        done = subprocess.run(
            [ROOT / "scripts" / "fuzz.sh", str(seconds), *options], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr[-5000:]
        runs = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("Done ")]
        assert len(runs) == 2, done.stdout  # files, and counting
        assert runs[0] > 1000
        assert runs[1] > 100  # each compares every row with every other
