#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-push-readers.py PROGRAM [TEST...] - pprof's own parser and Parca's own client read what `push` sends

Builds a small program with Debian's golang-go and golang-github-google-pprof-dev, and takes Parca's
client from npm. Prints TAP. A test is skipped if its tools are missing, or if npm cannot reach its
registry.
"""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "browser"))
import npm  # noqa: E402
from pushing import run_tests, without_vcpus  # noqa: E402

GO_PATH = pathlib.Path("/usr/share/gocode")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "virt-uprof")
# The client needs these packages, which need no others.
PACKAGES = ("@parca/client@0.17.24", "@protobuf-ts/runtime@2.11.1", "@protobuf-ts/runtime-rpc@2.11.1")
SECONDS_MAX = 300


def put_rounds(world):
    """Writes rounds with all kinds of frames and names."""
    rng = random.Random(4)
    now = int(time.time())
    module = {"name": "[lib.so.6]", "build_id": "00ff", "symbols": "", "matched": False, "module": True}
    stacks = (
        {"main;work": 3, "main;rest": 4},
        {"main;[app+0x1f];0x7fff": 1, "[unknown]": 2, "[truncated];lost": 3},
        {"nginx;[lib.so.6+0x1f]": 1},
        {"nginx;[lib.so.6+0x1f];write_[k];timer_[i]": 1, "write_[k]": 2},
        {"vcpu0;main;work": 1, "vcpu1;main;work": 2},
        {"std::vector<int>::push_back(int const&);\u6f22\u5b57;%s%n": 5, "(anonymous namespace)::f": 1},
        {f"main;work_{i}": rng.randint(1, 9) for i in range(20000)},
        {";".join(f"call_{i}" for i in range(1090)): 3},
    )
    for number, counts in enumerate(stacks, 1):
        name = "100% \u00fc {a=\"b\"}" if number == 1 else f"web-{number}"
        lists = "".join(f"{name}\tlib.so.6\t/src/{i}.c\t{i}\n" for i, name in enumerate(functions_of(counts)))
        world.put(name, number, now - number, counts, lists if number % 2 else None,
                  images=[module] if number in (3, 4) else [])  # fmt: skip


def push_all(world, engine):
    """Returns the requests that the receiver took."""
    put_rounds(world)
    receiver = world.receive_configured(engine, inner='<label name="site" value="fra1"/>')
    assert world.push_counting() == {"sent": len(world.rounds)}
    assert not receiver.faults, receiver.faults
    return receiver.accepted


def functions_of(stacks):
    return sorted({frame for stack in stacks for frame in stack.split(";") if frame[0] != "["})


def build_parser(folder):
    """Returns the path of the program, or None."""
    if not shutil.which("go") or not (GO_PATH / "src/github.com/google/pprof/profile").exists():
        return None
    program = folder / "parse-profiles"
    environment = dict(os.environ, GO111MODULE="off", GOPATH=str(GO_PATH), GOCACHE=str(CACHE / "go-build"), GOFLAGS="",
                       GOTOOLCHAIN="local", CGO_ENABLED="0")  # fmt: skip
    subprocess.run(["go", "build", "-o", program, HERE / "parse-profiles.go"], env=environment, cwd=folder, check=True,
                   stdin=subprocess.DEVNULL, timeout=SECONDS_MAX)  # fmt: skip
    return program


def test_pprof_in_go(world):
    parser = build_parser(world.folder)
    if not parser:
        return "no go, or no golang-github-google-pprof-dev"
    profiles = world.folder / "profiles"
    profiles.mkdir()
    wanted = {}
    for request in push_all(world, "pyroscope"):
        round_ = world.by_key()[request.key]
        (profiles / round_.uuid).write_bytes(request.packed)
        wanted[round_.uuid] = sum(without_vcpus(round_.stacks).values())
    done = subprocess.run([parser, profiles], capture_output=True, timeout=SECONDS_MAX)
    assert done.returncode == 0, done.stderr.decode()
    lines = re.findall(r"^(\S+) samples/count=(\d+) cpu/nanoseconds=(\d+)$", done.stdout.decode(), re.M)
    assert {uuid: int(count) for uuid, count, _ in lines} == wanted, (lines, wanted)
    (profiles / "cut").write_bytes(request.packed[:-20])
    assert subprocess.run([parser, profiles], capture_output=True, timeout=SECONDS_MAX).returncode == 1
    return None


def fetch_client(folder):
    """Makes a folder node_modules with the client. The client's modules are made for a bundler: they
    import each other without an ending of the file, which Node does not take."""
    for package in PACKAGES:
        name = package.rpartition("@")[0]
        work = folder / name.replace("/", "-")
        work.mkdir()
        target = folder / "node_modules" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        npm.fetch(package, work).rename(target)
    dist = folder / "node_modules/@parca/client/dist"
    (dist / "package.json").write_text('{"type": "module"}\n')
    for path in dist.rglob("*.js"):
        path.write_text(re.sub(r'( from "\.{1,2}/[^"]+)"', r'\1.js"', path.read_text()))


def test_client_of_parca(world):
    if not shutil.which("node"):
        return "no node"
    try:
        fetch_client(world.folder)
    except npm.CannotRun as error:
        return str(error)
    requests = world.folder / "requests"
    requests.mkdir()
    script = shutil.copy(HERE / "parse-requests.mjs", world.folder)
    wanted = {}
    for request in push_all(world, "parca"):
        uuid = request.labels["domain_uuid"]
        (requests / uuid).write_bytes(request.body)
        wanted[uuid] = (len(request.packed), [f"{name}={value}" for name, value in request.pairs])
    done = subprocess.run(["node", script, requests], capture_output=True, timeout=SECONDS_MAX)
    assert done.returncode == 0, done.stderr.decode()
    facts = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert {one["name"]: (one["bytes"], one["labels"]) for one in facts} == wanted, facts
    (requests / "unknown").write_bytes(request.body.replace(b'"normalized"', b'"normalised"'))
    assert subprocess.run(["node", script, requests], capture_output=True, timeout=SECONDS_MAX).returncode == 1
    return None


def main():
    return run_tests(os.path.abspath(sys.argv[1]), dict(sorted(globals().items())), sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
