# SPDX-License-Identifier: LGPL-2.1-or-later
"""
npm.py - packages from npm's registry, if it can be reached

A registry that does not answer, or says that it cannot, is no fault of ours. One
that answers and has no such package is.
"""

import re
import shutil
import subprocess
import tarfile
import time

SECONDS_MAX = 100
PAUSE_SECONDS = 5
# what npm says if nobody answers, if the registry cannot, or if somebody else does
NO_WAY = re.compile(
    r"\b(E408|E420|E429|E5\d\d"
    r"|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|EIDLETIMEOUT|ENETDOWN|ENETUNREACH"
    r"|EHOSTDOWN|EHOSTUNREACH|ERR_SOCKET_\w+|ERR_STREAM_PREMATURE_CLOSE|UND_ERR_\w+"
    r"|EPROTO|ERR_SSL_\w+|ERR_TLS_\w+|CERT_\w+|UNABLE_TO_\w+|SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT)\b"
)


class Impossible(Exception):
    """It cannot be tested here, and that is no fault."""


def pack(package, folder):
    """Returns: why it was not possible, or None."""
    try:
        done = subprocess.run(["npm", "pack", "--loglevel=error", "--fetch-retries=0", package], cwd=folder, check=False,
                              text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS_MAX)  # fmt: skip
    except subprocess.TimeoutExpired:
        return "it does not answer"
    if done.returncode == 0:
        return None
    why = NO_WAY.search(done.stderr)
    if not why:
        raise RuntimeError("npm pack: %s" % done.stderr)
    return why[0]


def fetch(package, folder, pause=PAUSE_SECONDS):
    """Unpacks the package into a folder. What did not work is tried once more."""
    if not shutil.which("npm"):
        raise Impossible("no npm")
    if pack(package, folder):
        time.sleep(pause)
        if why := pack(package, folder):
            raise Impossible("npm cannot reach its registry: %s" % why)
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder)
    return folder / "package"
