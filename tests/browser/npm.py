# SPDX-License-Identifier: LGPL-2.1-or-later
"""
npm.py - packages from npm's registry, if it can be reached

A test is skipped if the registry does not answer, or fails. If the registry answers, a
missing package is a failure.
"""

import re
import shutil
import subprocess
import tarfile
import time

SECONDS_MAX = 100
PAUSE_SECONDS = 5
# Codes in npm's messages if the registry does not answer, fails, or if a proxy answers instead
REGISTRY_FAILS = re.compile(
    r"\b(E408|E420|E429|E5\d\d"
    r"|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|EIDLETIMEOUT|ENETDOWN|ENETUNREACH"
    r"|EHOSTDOWN|EHOSTUNREACH|ERR_SOCKET_\w+|ERR_STREAM_PREMATURE_CLOSE|UND_ERR_\w+"
    r"|EPROTO|ERR_SSL_\w+|ERR_TLS_\w+|CERT_\w+|UNABLE_TO_\w+|SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT)\b"
)


class CannotRun(Exception):
    """The test cannot run on this machine, which is not a failure."""


def pack(package, folder):
    """Returns the reason of a failure, or None."""
    try:
        done = subprocess.run(["npm", "pack", "--loglevel=error", "--fetch-retries=0", package], cwd=folder, check=False,
                              text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS_MAX)  # fmt: skip
    except subprocess.TimeoutExpired:
        return "it does not answer"
    if done.returncode == 0:
        return None
    why = REGISTRY_FAILS.search(done.stderr)
    if not why:
        raise RuntimeError("npm pack: %s" % done.stderr)
    return why[0]


def fetch(package, folder, pause=PAUSE_SECONDS):
    """Unpacks the package into a folder. Retries a failure once."""
    if not shutil.which("npm"):
        raise CannotRun("no npm")
    if pack(package, folder):
        time.sleep(pause)
        if why := pack(package, folder):
            raise CannotRun("npm cannot reach its registry: %s" % why)
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder)
    return folder / "package"
