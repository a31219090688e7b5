#!/bin/bash
# `paceline info` says which GPU there is and which way its memory would take, and where there is none, why.
# Arguments: the command, the folder of the fake CUDA driver.
set -euo pipefail
paceline=$1 fake=$2
fail() { echo "failed: $*"; exit 1; }

LD_LIBRARY_PATH=$fake "$paceline" info --json |
  python3 -c '
import json, sys
gpus = json.load(sys.stdin)["gpus"]
device = gpus["devices"][0]
assert device["name"] == "Fake GPU 0" and device["registration"] == "staging" and device["reason"], device
assert gpus["driver"] == "CUDA 12.2", gpus' || fail "the GPU of the fake driver"
text=$(LD_LIBRARY_PATH=$fake FAKE_CUDA_FAIL=cuInit:1:2 "$paceline" info)
grep -q 'cuInit: CUDA_ERROR_OUT_OF_MEMORY (2)' <<<"$text" || fail "the reason for a driver that does not start: $text"
exit 0
