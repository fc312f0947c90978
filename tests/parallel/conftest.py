"""Tests of many devices are collected only in a process that has them; see api/devices.py."""

import os

collect_ignore_glob = [] if os.environ.get("WEFT_TEST_DEVICES") else ["on8/*"]
