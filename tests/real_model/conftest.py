"""The tests of this folder ask a language model: scripts/test-real-model.sh runs them."""

import os

collect_ignore = [] if os.environ.get("CRANFIELD_REAL_MODEL") else ["test_real_model.py"]
