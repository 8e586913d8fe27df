#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-install.py SOURCE-ROOT BUILD-ROOT FEATURE... - installed files work

Checks the list of files, the units (with systemd-analyze) and the crontab. Runs the hook,
the shell function and the examples with libvirt's test driver. FEATURE is xen, systemd or
completion, for each that the build has. Writes only to a temporary folder. Prints TAP.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

SECONDS = 120

# Installed files: path below the prefix, mode, and the feature that the build needs for the file.
# LIBDIR and SYSCONFDIR stand for options of the build.
# fmt: off
FILES = (
    ("bin/virt-uprof",                                              0o755, None),
    ("LIBDIR/virt-uprof/xen.so",                                    0o755, "xen"),
    ("LIBDIR/virt-uprof/xl.so",                                     0o755, "xl"),
    ("LIBDIR/virt-uprof/debuginfod-helper",                         0o755, "debuginfod"),
    ("LIBDIR/virt-uprof/disk-helper",                               0o755, "guestfs"),
    ("LIBDIR/virt-uprof/push-helper",                               0o755, "push"),
    ("SYSCONFDIR/virt-uprof.xml",                                   0o644, None),
    ("share/man/man1/virt-uprof.1",                                 0o644, None),
    ("share/man/man5/virt-uprof.xml.5",                             0o644, None),
    ("share/virt-uprof/virt-uprof.rng",                             0o644, None),
    ("share/virt-uprof/virsh-uprof.sh",                             0o644, None),
    ("lib/systemd/system/virt-uprof-collect.service",               0o644, "systemd"),
    ("lib/systemd/system/virt-uprof-collect.timer",                 0o644, "systemd"),
    ("lib/systemd/system/virt-uprof-prune.service",                 0o644, "systemd"),
    ("lib/systemd/system/virt-uprof-prune.timer",                   0o644, "systemd"),
    ("lib/systemd/system/virt-uprof-push.service",                  0o644, "systemd"),
    ("lib/systemd/system/virt-uprof-watch.service",                 0o644, "systemd"),
    ("lib/sysusers.d/virt-uprof.conf",                              0o644, "systemd"),
    ("lib/tmpfiles.d/virt-uprof.conf",                              0o644, "systemd"),
    ("share/bash-completion/completions/virt-uprof",                0o644, "completion"),
    ("share/zsh/site-functions/_virt-uprof",                        0o644, "completion"),
    ("share/fish/vendor_completions.d/virt-uprof.fish",             0o644, "completion"),
    ("share/doc/virt-uprof/README.md",                              0o644, None),
    ("share/doc/virt-uprof/CONTRIBUTING.md",                        0o644, None),
    ("share/doc/virt-uprof/SECURITY.md",                            0o644, None),
    ("share/doc/virt-uprof/doc/accuracy.md",                        0o644, None),
    ("share/doc/virt-uprof/doc/cost.md",                            0o644, None),
    ("share/doc/virt-uprof/doc/extending.md",                       0o644, None),
    ("share/doc/virt-uprof/doc/fleet.md",                           0o644, None),
    ("share/doc/virt-uprof/doc/fuzzing.md",                         0o644, None),
    ("share/doc/virt-uprof/doc/glossary.md",                        0o644, None),
    ("share/doc/virt-uprof/doc/guide.md",                           0o644, None),
    ("share/doc/virt-uprof/doc/internals.md",                       0o644, None),
    ("share/doc/virt-uprof/doc/linux.md",                           0o644, None),
    ("share/doc/virt-uprof/doc/periodic.md",                        0o644, None),
    ("share/doc/virt-uprof/doc/web-1.png",                          0o644, None),
    ("share/doc/virt-uprof/doc/xen.md",                             0o644, None),
    ("share/doc/virt-uprof/examples/crontab",                       0o644, None),
    ("share/doc/virt-uprof/examples/polkit.rules",                  0o644, None),
    ("share/doc/virt-uprof/examples/opt-in",                        0o755, None),
    ("share/doc/virt-uprof/examples/opt-out",                       0o755, None),
    ("share/doc/virt-uprof/examples/virt-uprof-boot@.service",      0o644, None),
    ("share/doc/virt-uprof/examples/hooks/qemu.d/virt-uprof",       0o755, None),
    ("share/doc/virt-uprof/examples/hooks/libxl.d/virt-uprof",      0o755, None),
)
# fmt: on

UUID = "4dea22b3-1d52-48f3-a516-00000000000a"
NAMES = ("web-1", "a;touch hacked", "$(touch hacked)", "-rf", "a b", "'\"", "a\n<uuid>x</uuid>", "")


class Suite:
    """Installs the build in a folder of its own, and counts failures."""

    def __init__(self, source, build, features):
        self.source, self.build, self.features = source, build, features
        self.count = self.failed = 0
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="uprof-install-"))
        self.root = self.folder / "root"
        options = self.introspect("--buildoptions")
        self.options = {option["name"]: option["value"] for option in options}
        self.prefix = self.options["prefix"].strip("/")
        self.bin = self.folder / "bin"
        self.bin.mkdir()

    def introspect(self, what):
        done = subprocess.run(
            ["meson", "introspect", what, str(self.build)], capture_output=True, check=True, timeout=SECONDS
        )
        return json.loads(done.stdout)

    def say(self, name, faults):
        self.count += 1
        self.failed += bool(faults)
        print("%s %d %s" % ("not ok" if faults else "ok", self.count, name.replace("#", "_")))
        for fault in faults:
            print("# " + str(fault).replace("\n", "\n# "), flush=True)

    def skip(self, name, why):
        self.count += 1
        print("ok %d %s # SKIP %s" % (self.count, name, why))

    def installed(self, path):
        return self.root / self.prefix / path

    def write_program(self, name, text):
        """Writes a program that replaces others of its name in $PATH."""
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    def run(self, *words, **options):
        environment = dict(os.environ, LC_ALL="C", PATH="%s:%s" % (self.bin, os.environ["PATH"]))
        environment.pop("LIBVIRT_DEFAULT_URI", None)
        environment.pop("VIRSH_DEFAULT_CONNECT_URI", None)
        environment.update(options.pop("env", {}))
        options.setdefault("input", b"")
        return subprocess.run(
            [str(word) for word in words],
            capture_output=True,
            cwd=self.folder,
            env=environment,
            timeout=SECONDS,
            check=False,
            **options,
        )

    def expect(self, name, done, code=0, stdout=None, stderr=None):
        faults = []
        if done.returncode != code:
            faults.append("exit code %d, not %d: %r %r" % (done.returncode, code, done.stdout, done.stderr))
        for what, got, wanted in (("stdout", done.stdout, stdout), ("stderr", done.stderr, stderr)):
            if wanted is not None and got != wanted:
                faults.append("%s is %r and not %r" % (what, got, wanted))
        self.say(name, faults)


def test_files(suite):
    environment = {"DESTDIR": str(suite.root)}
    done = suite.run("meson", "install", "-C", suite.build, "--no-rebuild", "--quiet", env=environment)
    suite.expect("install", done)
    expected = {}
    for path, mode, feature in FILES:
        if feature and feature not in suite.features:
            continue
        for name in ("libdir", "sysconfdir"):
            path = path.replace(name.upper(), suite.options[name])
        expected["%s/%s" % (suite.prefix, path)] = mode
    found = {
        str(path.relative_to(suite.root)): stat.S_IMODE(path.lstat().st_mode)
        for path in suite.root.rglob("*")
        if not path.is_dir() or path.is_symlink()
    }
    faults = ["%s is missing" % path for path in sorted(set(expected) - set(found))]
    faults += ["%s is not expected" % path for path in sorted(set(found) - set(expected))]
    faults += [
        "%s has mode %o and not %o" % (path, found[path], mode)
        for path, mode in sorted(expected.items())
        if found.get(path, mode) != mode
    ]
    suite.say("files", faults)
    active = [path for path in found if "cron.d" in path or ".wants/" in path or "libvirt/hooks" in path]
    suite.say("nothing-is-active", active)


def test_units(suite):
    if "systemd" not in suite.features or not shutil.which("systemd-analyze"):
        suite.skip("units", "the build is without units, or 'systemd-analyze' is not installed")
        return
    folder = suite.folder / "units"
    folder.mkdir()
    units = sorted(suite.installed("lib/systemd/system").iterdir())
    units.append(suite.source / "virsh-ext/hooks/virt-uprof-boot@.service")
    program = suite.installed("bin/virt-uprof")
    for unit in units:
        text = re.sub(r"^(ExecS\w+=)\S+/virt-uprof ", r"\1%s " % program, unit.read_text(), flags=re.M)
        (folder / unit.name).write_text(text)
    for unit in units:
        name = unit.name.replace("@", "@" + UUID)
        done = suite.run("systemd-analyze", "verify", "--man=no", folder / name)
        if unit.name != name:
            (folder / name).unlink(missing_ok=True)
        suite.expect("verify/" + unit.name, done, 0, b"", b"")
    # systemd-analyze must find a fault in a bad unit.
    bad = folder / "bad.service"
    bad.write_text((folder / "virt-uprof-collect.service").read_text().replace("TasksMax=", "TasksMost="))
    done = suite.run("systemd-analyze", "verify", "--man=no", bad)
    suite.say("verify/bad", [] if b"TasksMost" in done.stderr else [repr(done.stderr)])
    for name, threshold in (("collect", 40), ("prune", 20), ("push", 30), ("watch", 40)):
        done = suite.run(
            "systemd-analyze", "security", "--no-pager", "--offline=true",
            "--threshold=%d" % threshold, folder / ("virt-uprof-%s.service" % name),
        )  # fmt: skip
        suite.expect("security/" + name, done)
    for name in ("collect", "prune"):
        text = (folder / ("virt-uprof-%s.timer" % name)).read_text()
        when = re.search("^OnCalendar=(.*)$", text, re.M)[1]
        suite.expect("calendar/" + name, suite.run("systemd-analyze", "calendar", when))
    if os.geteuid() != 0 or not shutil.which("systemd-tmpfiles"):
        suite.skip("tmpfiles", "only root can make folders of root")
        return
    root = suite.folder / "tmpfiles"
    root.mkdir()
    conf = suite.installed("lib/tmpfiles.d/virt-uprof.conf")
    suite.expect("tmpfiles", suite.run("systemd-tmpfiles", "--create", "--root=%s" % root, conf))
    modes = {
        path: stat.S_IMODE((root / path).stat().st_mode)
        for path in ("run/virt-uprof", "var/lib/virt-uprof", "var/lib/virt-uprof/symbols")
    }
    suite.say("tmpfiles/modes", [] if list(modes.values()) == [0o700, 0o750, 0o750] else [modes])


def is_cron_field(text, low, high):
    """Checks a field of crontab(5) that has only numbers."""
    for part in text.split(","):
        match = re.fullmatch(r"(\*|(\d+)(?:-(\d+))?)(?:/(\d+))?", part)
        if not match:
            return False
        numbers = [int(number) for number in match.groups()[1:3] if number]
        if any(number < low or number > high for number in numbers) or match[4] == "0":
            return False
    return True


def test_crontab(suite):
    text = suite.installed("share/doc/virt-uprof/examples/crontab").read_text()
    lines = [line for line in text.splitlines() if line and line[0] != "#" and not re.match(r"\w+=", line)]
    faults = [] if len(lines) == 3 else ["%d lines" % len(lines)]
    faults += [] if text.endswith("\n") else ["its last line does not end, so cron ignores it"]
    suite.write_program("virt-uprof", '#!/bin/sh\necho "$*"\n')
    marker = suite.folder / "systemd"
    for line, command in zip(lines, ("collect -q", "push -q --spread 60s", "prune -q")):
        fields = line.split(None, 6)
        limits = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
        if not all(is_cron_field(field, *limit) for field, limit in zip(fields, limits)):
            faults.append("bad times: %s" % line)
        if fields[5] != "root" or "%" in line:
            faults.append("bad user, or a '%%', which ends a command: %s" % line)
        for there, expected in ((False, command + "\n"), (True, "")):
            shutil.rmtree(marker, ignore_errors=True)
            if there:
                marker.mkdir()
            done = suite.run("/bin/sh", "-c", command_of(line, marker, suite))
            if done.stdout.decode() != expected or done.returncode != 0 or done.stderr:
                faults.append("%s systemd: %r" % ("with" if there else "without", done))
    suite.say("crontab", faults)


def command_of(line, marker, suite):
    """Returns the command of a line of /etc/cron.d, with paths replaced by those of the test."""
    command = re.match(r"(?:\S+\s+){6}(.*)", line)[1]
    return command.replace("/run/systemd/system", str(marker)).replace("/%s/bin/" % suite.prefix, "%s/" % suite.bin)


def domain_xml(name):
    text = "".join("&#%d;" % ord(c) if c in "&<>\"'" else c for c in name if c != "\n")
    return (
        "<domain type='kvm' id='7'>\n  <name>%s</name>\n  <uuid>%s</uuid>\n"
        "  <metadata>\n    <x:y xmlns:x='urn:x'>\n      <uuid>00000000-0000-0000-0000-000000000000</uuid>\n"
        "    </x:y>\n  </metadata>\n</domain>\n" % (text, UUID)
    ).encode()


def test_hook(suite):
    calls = suite.folder / "calls"
    pids = suite.folder / "pids"
    # This systemctl never ends.
    suite.write_program(
        "systemctl", '#!/bin/sh\necho $$ >>"%s"\necho "$*" >>"%s"\nexec sleep 600\n' % (pids, calls)
    )
    expected = "start --no-block virt-uprof-boot@%s.service\n" % UUID
    quiet = (("prepare", "begin"), ("start", "begin"), ("stopped", "end"), ("release", "end"),
             ("reconnect", "begin"), ("migrate", "begin"), ("restore", "begin"), ("attach", "begin"), ("started", ""))  # fmt: skip
    for driver in ("qemu", "libxl"):
        hook = suite.installed("share/doc/virt-uprof/examples/hooks/%s.d/virt-uprof" % driver)
        faults = []
        for name in NAMES:
            done = suite.run(hook, name, "started", "begin", "-", input=domain_xml(name))
            if done.returncode != 0 or done.stdout or done.stderr:
                faults.append("%r: %r" % (name, done))
            if not wait_for(lambda: calls.exists() and calls.read_text() == expected):
                faults.append("%r: %r" % (name, calls.read_text() if calls.exists() else "no call"))
            calls.unlink(missing_ok=True)
        for words in quiet + ((),):
            done = suite.run(hook, "web-1", *words, "-", input=domain_xml("web-1"))
            if done.returncode != 0 or done.stdout or done.stderr:
                faults.append("%r: %r" % (words, done))
        for text in (b"", b"<domain>", b"  <uuid>; touch hacked</uuid>\n", b"\xff\0" * 1000):
            done = suite.run(hook, "web-1", "started", "begin", "-", input=text)
            if done.returncode != 0 or done.stdout or done.stderr:
                faults.append("%r: %r" % (text[:20], done))
        if calls.exists():
            faults.append("called: %r" % calls.read_text())
        suite.say("hook/" + driver, faults)
    for pid in pids.read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    # A host without systemd has no systemctl.
    (suite.bin / "systemctl").unlink()
    done = suite.run(hook, "web-1", "started", "begin", "-", input=domain_xml("web-1"), env={"PATH": "/nonexistent"})
    suite.expect("hook/no-program", done, 0, b"", b"")


def wait_for(condition):
    end = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_function(suite):
    """Tests `virsh uprof`. Other commands reach the real virsh."""
    script = suite.installed("share/virt-uprof/virsh-uprof.sh")
    suite.write_program(
        "virt-uprof",
        '#!/bin/sh\nprintf "%s|" "${LIBVIRT_DEFAULT_URI-none}" "$@"\nexit 5\n',
    )
    # command line, and what virt-uprof gets: connection and words
    cases = (
        ('virsh uprof list', "none|list|"),
        ('virsh -c test:///default uprof list', "test:///default|list|"),
        ('virsh --connect test:///default uprof', "test:///default|"),
        ('virsh --connect=test:///default -q uprof dump x', "test:///default|dump|x|"),
        ('virsh -ctest:///default uprof "a b" ";touch hacked" \'$(touch hacked)\' "" "*"',
         "test:///default|a b|;touch hacked|$(touch hacked)||*|"),
        ('virsh uprof -- -rf', "none|--|-rf|"),
        ('virsh uprof uprof', "none|uprof|"),
        ('VIRSH_DEFAULT_CONNECT_URI=test:///a; LIBVIRT_DEFAULT_URI=test:///b; virsh uprof', "test:///a|"),
        ('export LIBVIRT_DEFAULT_URI=test:///b; virsh uprof', "test:///b|"),
        ('virsh -c test:///default uprof; echo "${LIBVIRT_DEFAULT_URI-still none}"', "test:///default|still none\n"),
    )  # fmt: skip
    for shell, words in (("bash", ["--norc", "--noprofile"]), ("zsh", ["-f"])):
        if not shutil.which(shell):
            suite.skip("function/" + shell, "'%s' is not installed" % shell)
            continue
        faults = []
        for line, expected in cases:
            done = suite.run(shell, *words, "-c", '. "%s"; set -u; %s' % (script, line))
            code = 0 if "echo" in line else 5
            if done.stdout.decode() != expected or done.stderr or done.returncode != code:
                faults.append("%s: %r" % (line, done))
        suite.say("function/" + shell, faults)
        if not shutil.which("virsh"):
            suite.skip("function/%s/virsh" % shell, "'virsh' is not installed")
            continue
        for name, line, expected, code in (
            ("virsh", "virsh -c test:///default -q list --name", b"test\n", 0),
            ("virsh/uprof-as-domain", "virsh -c test:///default domstate uprof", b"\n", 1),
            ("virsh/read-only", "virsh -r -c test:///default domname 1", b"test\n\n", 0),
        ):
            done = suite.run(shell, *words, "-c", '. "%s"; %s' % (script, line))
            suite.expect("function/%s/%s" % (shell, name), done, code, expected)
    (suite.bin / "virt-uprof").unlink()
    (suite.bin / "virt-uprof").symlink_to(suite.installed("bin/virt-uprof"))
    line = '. "%s"; virsh -c test:///default uprof list --json' % script
    done = suite.run("bash", "--norc", "--noprofile", "-c", line)
    suite.say("function/program", [] if b'"name": "test"' in done.stdout else [done])


def test_opt_in_and_out(suite):
    if not shutil.which("virsh"):
        suite.skip("opt-in", "'virsh' is not installed")
        return
    calls = suite.folder / "virsh-calls"
    suite.write_program(
        "virsh",
        '#!/bin/sh\nprintf "%%s|" "$@" >>"%s"\nexec %s -q "$@"\n' % (calls, shutil.which("virsh")),
    )
    node = suite.folder / "node.xml"
    node.write_text(
        "<node><domain type='test'><name>test</name><uuid>%s</uuid><metadata>"
        "<u:profile xmlns:u='https://virt-uprof.org/xmlns/domain/1.0' enabled='yes'/></metadata>"
        "<memory>8192</memory><os><type arch='x86_64'>hvm</type></os></domain></node>" % UUID
    )
    # libvirt's test driver forgets metadata at the end of the connection, so the test checks the calls of virsh.
    for script, uri, ending in (
        ("opt-in", "test:///default", '--config|--live|--key|uprof|--set|<profile enabled="yes"/>|'),
        ("opt-out", "test://%s" % node, "--config|--live|--remove|"),
    ):
        path = suite.installed("share/doc/virt-uprof/examples/" + script)
        calls.write_text("")
        done = suite.run(path, "test", env={"LIBVIRT_DEFAULT_URI": uri})
        wanted = "metadata|--domain|test|https://virt-uprof.org/xmlns/domain/1.0|" + ending
        faults = [] if calls.read_text().endswith(wanted) else [calls.read_text()]
        suite.say(script, faults + ([] if done.returncode == 0 else [done]))
    (suite.bin / "virsh").unlink()
    for script in ("opt-in", "opt-out"):
        path = suite.installed("share/doc/virt-uprof/examples/" + script)
        done = suite.run(path, "$(x)", env={"LIBVIRT_DEFAULT_URI": "test:///default"})
        suite.expect(script + "/unknown", done, 1)


POLKIT = """
const fs = require("fs");
let rule;
const polkit = { Result: { YES: "yes", NOT_HANDLED: "not handled" }, addRule: (f) => { rule = f; } };
new Function("polkit", fs.readFileSync(process.argv[1], "utf8"))(polkit);
for (const [id, name, group] of JSON.parse(process.argv[2]))
    console.log(rule({ id: id, lookup: (key) => (key === "domain_name" ? name : undefined) },
                     { isInGroup: (g) => g === group }));
"""


def test_polkit(suite):
    if not shutil.which("node"):
        suite.skip("polkit", "'node' is not installed")
        return
    path = suite.installed("share/doc/virt-uprof/examples/polkit.rules")
    api = "org.libvirt.api."
    cases = (
        (api + "domain.suspend", "web-1", "virt-uprof-users", "yes"),
        (api + "domain.mem-read", "web-2", "virt-uprof-users", "yes"),
        (api + "connect.search-domains", None, "virt-uprof-users", "yes"),
        ("org.libvirt.unix.manage", None, "virt-uprof-users", "yes"),
        (api + "domain.suspend", "web-3", "virt-uprof-users", "not handled"),
        (api + "domain.suspend", "web-1", "users", "not handled"),
        (api + "domain.suspend", "web-1", "virt-uprof", "not handled"),
        (api + "domain.delete", "web-1", "virt-uprof-users", "not handled"),
        (api + "domain.core-dump", "web-1", "virt-uprof-users", "not handled"),
        (api + "connect.write", None, "virt-uprof-users", "not handled"),
        ("org.freedesktop.systemd1.manage-units", None, "virt-uprof-users", "not handled"),
    )
    done = suite.run("node", "-e", POLKIT, path, json.dumps([case[:3] for case in cases]))
    suite.expect("polkit", done, 0, "".join(case[3] + "\n" for case in cases).encode())
    policies = pathlib.Path("/usr/share/polkit-1/actions")
    known = "".join(file.read_text() for file in policies.glob("org.libvirt.*.policy"))
    if not known:
        suite.skip("polkit/actions", "libvirt's policies are not installed")
        return
    actions = re.findall(r'"(org\.libvirt\.[^"]+)"', path.read_text())
    unknown = [action for action in actions if '"%s"' % action not in known]
    suite.say("polkit/actions", unknown + ([] if len(actions) > 5 else ["no actions"]))


def main():
    suite = Suite(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:])
    test_files(suite)
    test_units(suite)
    test_crontab(suite)
    test_hook(suite)
    test_function(suite)
    test_opt_in_and_out(suite)
    test_polkit(suite)
    hacked = [path.name for path in suite.folder.iterdir() if path.name == "hacked"]
    suite.say("nothing-was-run", hacked)
    shutil.rmtree(suite.folder)
    print("1..%d" % suite.count)
    return 1 if suite.failed else 0


sys.exit(main())
