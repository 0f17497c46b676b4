"""The tests of this folder are about an installed wheel: scripts/test-wheel.sh runs them."""

import os

collect_ignore = [] if os.environ.get("CRANFIELD_SOURCES") else ["test_wheel.py"]
