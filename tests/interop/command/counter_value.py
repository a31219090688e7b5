#!/usr/bin/env python3
"""Prints a counter of a running process, summed over its contexts: counter_value.py PID NAME

Reads the pages in shared memory that docs/counters.md describes. Fails when the process has none.
"""

import glob
import struct
import sys

pid, name = sys.argv[1:]
pages = glob.glob(f"/dev/shm/paceline-{pid}-*")
if not pages:
    sys.exit(f"process {pid} has no counters page")
total = 0
for path in pages:
    with open(path, "rb") as file:
        page = file.read()
    magic, version, header, record, count = struct.unpack_from("<8s4I", page)
    if magic != b"PCLCNTRS" or version != 1:
        sys.exit(f"{path} is no counters page of version 1")
    for start in range(header, header + count * record, record):
        if page[start:start + 40].rstrip(b"\0").decode() == name:
            total += struct.unpack_from("<Q", page, start + 56)[0]
print(total)
