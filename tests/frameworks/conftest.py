"""Tests that need frameworks of other projects: scripts/test-frameworks.sh runs them."""

import importlib.util
import os

collect_ignore_glob = [] if importlib.util.find_spec("langchain_core") else ["test_*.py"]
# Nothing is asked of a network, and nothing is reported to the makers.
os.environ |= {"HF_HUB_OFFLINE": "1", "HAYSTACK_TELEMETRY_ENABLED": "False", "LANGSMITH_TRACING": "false"}
os.environ["ANONYMIZED_TELEMETRY"] = "False"
