"""with_numpy.py PROGRAM: runs a Python program; exit status 77, skipped, where numpy is missing."""

import importlib.util
import subprocess
import sys


def main():
    if importlib.util.find_spec("numpy") is None:
        print("skipped: python3-numpy not installed")
        return 77
    return subprocess.run([sys.executable, *sys.argv[1:]], check=False).returncode


sys.exit(main())
