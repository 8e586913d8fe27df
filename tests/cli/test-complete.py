#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-complete.py PROGRAM SOURCE-ROOT [PATTERN] - completion in bash, zsh and fish

Checks the candidates of the program. Then presses keys in interactive shells, each on a
terminal of its own, runs the completed command line and checks the arguments of the
command. The domains of libvirt's test driver have names that a shell could run, split
or treat as options. Prints TAP.
"""

import fnmatch
import os
import pathlib
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"
SECONDS = 60  # a shell's time to answer on a busy machine
# The program stops after a second, without candidates. A test that takes nearly that long is retried.
BUSY_S, TRIES = 0.8, 5
RUNNING, SHUT_OFF = 0, 5

# Each name has a prefix of its own. The test types this prefix in the syntax of the shell.
# fmt: off
NAMES = (
    # name,                  typed,        typed in fish, if different
    ("a;b",                  "a",          None),
    ("b c",                  "b",          None),
    ("b c d",                "b\\ c\\ ",   None),
    ("$(touch hacked)",      "\\$",        None),
    ("`touch hacked2`",      "\\`",        "`"),
    ("d&touch hacked3",      "d",          None),
    ("e|f",                  "e",          None),
    ("f>g",                  "f",          None),
    ("g\"h'i",               "g",          None),
    ("h\\i",                 "h",          None),
    ("*",                    "\\*",        None),
    ("~root",                "\\~",        None),
    ("#i",                   "\\#",        None),
    ("{j,k}",                "\\{",        None),
    ("[k]",                  "\\[",        None),
    ("l=m:n",                "l=",         None),
    ("l2=m:n o",             "l2=m:",      None),
    ("m%n$HOME",             "m",          None),
    ("n\u00e9e x",           "n",          None),
    (" o",                   "\\ ",        None),
)
QUOTED = (
    ("b c d", "'b c ", "'"),
    ("b c d", '"b c ', '"'),
    ("g\"h'i", "'g", "'"),
    ("g\"h'i", '"g', '"'),
    ("$(touch hacked)", "'$", "'"),
    ("h\\i", '"h', '"'),
)
# fmt: on
OTHERS = ("-rf", "list", "tab\there", "c1\u009bm", "\u202eevil", "web-1", "web-2", "off-1")


def escape_xml(text):
    return "".join("&#%d;" % ord(c) if c in "&<>\"'" or ord(c) < 0x20 else c for c in text)


def make_uuid(number):
    return "4dea22b3-1d52-48f3-a516-%012x" % number


def write_node(path):
    """Writes a host for libvirt's test driver with all names. Returns the UUID of each name."""
    uuids = {}
    parts = ["<node>"]
    for name in [row[0] for row in NAMES] + list(OTHERS):
        uuids[name] = make_uuid(len(uuids) + 1)
        state = SHUT_OFF if name.startswith("off") else RUNNING
        parts.append(
            "<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>"
            "<name>%s</name><uuid>%s</uuid><memory>8192</memory><vcpu>1</vcpu>"
            "<os><type arch='x86_64'>hvm</type></os>%s</domain>"
            % (
                escape_xml(name),
                uuids[name],
                "<test:runstate>%d</test:runstate>" % state if state else "",
            )
        )
    parts.append("</node>")
    path.write_text("\n".join(parts), encoding="utf-8")
    return uuids


class Suite:
    """Runs the program in a folder of its own, and counts failures."""

    def __init__(self, program, pattern):
        self.program = program
        self.pattern = pattern
        self.count = self.failed = 0
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="uprof-complete-"))
        self.uuids = write_node(self.folder / "node.xml")
        self.uri = "test://%s/node.xml" % self.folder
        (self.folder / "here").mkdir()
        self.environment = {
            "PATH": "%s:%s" % (self.folder / "bin", os.environ["PATH"]),
            "HOME": str(self.folder / "home"),
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
            "LIBVIRT_DEFAULT_URI": self.uri,
            "UPROF_ARGUMENTS": str(self.folder / "arguments"),
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        (self.folder / "home").mkdir()
        (self.folder / "bin").mkdir()
        # The wrapper passes --complete to the real program, and retries like complete(). Any
        # other run only writes its arguments to a file.
        wrapper = self.folder / "bin/virt-uprof"
        wrapper.write_text(
            "#!/bin/bash\n"
            'if [ "${1-}" = --complete ]; then\n'
            "    for try in {1..%d}; do\n"
            "        start=${EPOCHREALTIME/./}\n"
            '        %s "$@" >"$UPROF_ARGUMENTS.$$"\n'
            "        code=$?\n"
            "        [ $code = 0 ] && [ $((${EPOCHREALTIME/./} - start)) -ge %d ] || break\n"
            "    done\n"
            '    cat "$UPROF_ARGUMENTS.$$"\n'
            '    rm "$UPROF_ARGUMENTS.$$"\n'
            '    exit "$code"\n'
            "fi\n"
            'printf "%%s\\0" "$@" >"$UPROF_ARGUMENTS.new" && mv "$UPROF_ARGUMENTS.new" "$UPROF_ARGUMENTS"\n'
            % (TRIES, program, BUSY_S * 1000000)
        )
        wrapper.chmod(0o755)

    def wants(self, name):
        return not self.pattern or fnmatch.fnmatchcase(name, self.pattern)

    def say(self, name, faults):
        self.count += 1
        self.failed += bool(faults)
        print("%s %d %s" % ("not ok" if faults else "ok", self.count, name.replace("#", "_")))
        for fault in faults:
            print("# " + fault.replace("\n", "\n# "), flush=True)

    def skip(self, name, why):
        self.count += 1
        print("ok %d %s # SKIP %s" % (self.count, name, why))

    def complete(self, *words, **environment):
        """Returns the candidates of the program."""
        for _ in range(TRIES):
            start = time.monotonic()
            done = subprocess.run(
                [self.program, "--complete", *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd=self.folder / "here",
                env=dict(self.environment, **environment),
                timeout=SECONDS,
                check=False,
            )
            if done.returncode != 0 or done.stderr or time.monotonic() - start < BUSY_S:
                break
        if done.returncode != 0 or done.stderr:
            return ["exit code %d, %r" % (done.returncode, done.stderr)]
        return done.stdout.decode().splitlines()

    def expect(self, name, words, expected, **environment):
        if not self.wants(name):
            return
        got = self.complete(*words, **environment)
        self.say(name, [] if got == expected else ["%r is offered, not %r" % (got, expected)])


def test_program(suite):
    commands = suite.complete("", LIBVIRT_DEFAULT_URI="test+ssh://nowhere/default")
    suite.say("commands", [] if {"record", "list", "check", "report"} <= set(commands) else [repr(commands)])
    suite.expect("command", ["rec"], ["record"])
    suite.expect("option", ["record", "--ra"], ["--rate"])
    suite.expect("option/no-command", ["--ra"], ["--rate"])
    suite.expect("option/of-another-command", ["list", "--ra"], [])
    suite.expect("option/optional-argument", ["record", "--id"], ["--idle", "--idle=stack"])
    suite.expect("choice", ["--access", "d"], ["direct"])
    suite.expect("choice/equals", ["--access=d"], ["--access=direct"])
    suite.expect("choice/format", ["-f", "s"], ["svg", "speedscope"])
    suite.expect("choice/short", ["-fs"], ["-fsvg", "-fspeedscope"])
    suite.expect("choice/cluster", ["-qfs"], ["-qfsvg", "-qfspeedscope"])
    suite.expect("choice/optional", ["--idle="], ["--idle=stack"])
    suite.expect("value/none", ["--rate", ""], [])
    suite.expect("files", ["record", "-o", "x"], ["/files "])
    suite.expect("files/equals", ["record", "--output=x"], ["/files --output="])
    suite.expect("files/report", ["report", ""], ["/files "])
    suite.expect("files/diff", ["diff", "x"], ["/files "])
    suite.expect("days", ["summary", ""], ["today", "yesterday"])
    suite.expect("days/diff", ["diff", "web-1@today", "web-1@y"], ["web-1@yesterday"])
    suite.expect("days/since", ["report", "--since", "t"], ["today"])
    suite.expect("domains/since", ["report", "--since=today", "web"], ["web-1", "web-2"])
    suite.expect("choice/config", ["prune", "--config", ""], ["/files "])
    suite.expect("folders/store", ["collect", "--store="], ["/folders --store="])
    suite.expect("choice/by", ["top", "--by", "p"], ["process"])
    suite.expect("folders", ["report", "--debug-dir", ""], ["/folders "])
    suite.expect("uri", ["-c", "test:"], ["test:///default"])
    suite.expect("domains", ["record", "web"], ["web-1", "web-2"])
    suite.expect("domains/no-command", ["web"], ["web-1", "web-2"])
    suite.expect("domains/second", ["web-1", "web"], ["web-1", "web-2"])
    suite.expect("domains/of-uri", ["-c", "test:///default", "record", "t"], ["test"])
    suite.expect("domains/of-uri-after-command", ["record", "--connect=test:///default", "t"], ["test"])
    suite.expect("domains/of-short-uri", ["-ctest:///default", "record", ""], ["test"])
    suite.expect("domains/running", ["record", "off"], [])
    suite.expect("domains/wait", ["record", "--wait", "off"], ["off-1"])
    suite.expect("domains/check", ["check", "off"], ["off-1"])
    suite.expect("domains/none", ["list", "web"], [])
    suite.expect("domains/dash", ["record", "--", "-"], ["-rf"])
    suite.expect("domains/command", ["record", "li"], ["list"])
    suite.expect("domains/not-command", ["li"], ["list"])
    suite.expect("domains/remote", ["-c", "qemu+ssh://nowhere.invalid/system", "record", ""], [])
    suite.expect("domains/no-daemon", ["-c", "qemu+unix:///system?socket=/nonexistent", "dump", ""], [])
    uuids = [suite.uuids[n] for n in ("-rf", "c1\u009bm", "tab\there", "\u202eevil")]
    suite.expect("domains/by-uuid", ["record", "4dea22b3"], uuids)
    names = [row[0] for row in NAMES] + ["list", "web-1", "web-2"]
    got = suite.complete("record", "")
    suite.say("domains/all", [] if sorted(got) == sorted(names + uuids) else [repr(got)])
    suite.expect("nothing-at-all", [], suite.complete(""))
    suite.expect("hostile", ["\x1b[31m%n%s", "--=", "-", "--x=y", ""], suite.complete("web-1", ""))


def test_hanging_daemon(suite):
    """Completion returns even if a daemon accepts connections and never answers."""
    path = suite.folder / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(16)
        uri = "qemu+unix:///system?socket=%s" % path
        suite.expect("daemon-hangs", ["-c", uri, "record", ""], [])
        suite.expect("daemon-hangs/commands", ["-c", uri, "rec"], ["record"])


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, suite, name, words, setup):
        self.suite, self.name = suite, name
        self.seen = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(suite.folder / "here")
            os.execvpe(words[0], words, suite.environment)
        self.press("".join(line + "\r" for line in setup))
        self.press("virt-uprof ready\r")
        self.ready = self.arguments() == ["ready"]

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def read(self, seconds):
        """Reads the terminal, so that the shell never waits for a reader."""
        if select.select([self.terminal], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.terminal, 65536)
            except OSError:
                time.sleep(seconds)

    def arguments(self):
        """Returns the arguments of the command that ran, or None if none ran."""
        path = self.suite.folder / "arguments"
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            self.read(0.01)
            if path.exists():
                words = path.read_bytes().decode("utf-8", "replace").split("\0")[:-1]
                path.unlink()
                return words
        return None

    def expect(self, name, keys, expected, end="\r", command="virt-uprof"):
        """Types @keys, TAB and @end. The command must get the arguments @expected."""
        name = "%s/%s" % (self.name, name)
        if not self.suite.wants(name):
            return
        self.seen = b""
        self.press(command + " " + keys + "\t" + end)
        got = self.arguments()
        faults = [] if got == expected else ["%r arrived, not %r; the terminal: %r" % (got, expected, self.seen)]
        if got is None:
            self.press("\x03")
        self.suite.say(name, faults)

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


def test_shell(suite, name, words, setup):
    if not suite.wants("%s/x" % name):
        return
    if not shutil.which(words[0]):
        suite.skip(name, "'%s' is not installed" % words[0])
        return
    shell = Shell(suite, name, words, setup)
    if not shell.ready:
        suite.say(name, ["the shell does not start; the terminal: %r" % shell.seen])
        shell.close()
        return
    shell.expect("command", "rec", ["record"])
    shell.expect("option", "record --max-p", ["record", "--max-pause"])
    shell.expect("choice", "record --access mon", ["record", "--access", "monitor"])
    shell.expect("choice/equals", "record --access=mon", ["record", "--access=monitor"])
    shell.expect("uri", "-c test:///def", ["-c", "test:///default"])
    shell.expect("file", "report a\\ f", ["report", "a file;x"])
    shell.expect("file/equals", "record --output=a\\ f", ["record", "--output=a file;x"])
    shell.expect("domain/of-uri", "-c test:///default record te", ["-c", "test:///default", "record", "test"])
    shell.expect("domain/several", "record we", ["record", "web-1"], end="1\r")
    shell.expect("domain/dash", "record -- -r", ["record", "--", "-rf"])
    for domain, typed, in_fish in NAMES:
        keys = in_fish if name == "fish" and in_fish else typed
        # 'b c' is also a prefix of another name, so the shell adds no blank.
        end = " \r" if domain == "b c" else "\r"
        shell.expect("domain/" + domain, "record " + keys, ["record", domain], end)
    for domain, typed, quote in QUOTED:
        if "`" in typed or (name == "fish" and "$" in typed and quote == '"'):
            continue
        shell.expect("quoted/%s%s" % (quote, domain), "record " + typed, ["record", domain])
    shell.close()


def test_virsh(suite, name, words, setup, own):
    """Tests `virsh uprof`. @own: (keys, arguments) for virsh's own completion, or None."""
    if not suite.wants("virsh/%s/x" % name):
        return
    if not shutil.which(words[0]) or not shutil.which("virsh"):
        suite.skip("virsh/" + name, "'%s' or 'virsh' is not installed" % words[0])
        return
    shell = Shell(suite, "virsh/" + name, words, setup)
    if not shell.ready:
        suite.say("virsh/" + name, ["the shell does not start; the terminal: %r" % shell.seen])
        shell.close()
        return
    for what, keys, expected in (
        ("command", "uprof rec", ["record"]),
        ("option", "-q uprof record --max-p", ["record", "--max-pause"]),
        ("choice", "uprof record --access=mon", ["record", "--access=monitor"]),
        ("file", "uprof report a\\ f", ["report", "a file;x"]),
        ("of-uri", "-c test:///default uprof record te", ["record", "test"]),
        ("of-uri/equals", "--connect=test:///default uprof check te", ["check", "test"]),
        ("hostile", "uprof record \\$", ["record", "$(touch hacked)"]),
        ("quoted", "uprof record 'b c d", ["record", "b c d"]),
        ("uprof", "-c test:///default upr", [""]),
    ):
        shell.expect(what, keys, expected, command="virsh")
    if own:
        shell.expect("own", own[0], own[1], command="virsh")
    else:
        suite.skip("virsh/%s/own" % name, "no completion of virsh's own is installed")
    shell.expect("uprof-after-own", "uprof rec", ["record"], command="virsh")
    shell.close()


def prepare_virsh(suite, source):
    """Installs virsh-uprof.sh and the completion in the folder. Returns the path of virsh-uprof.sh."""
    share = suite.folder / "share"
    (share / "virt-uprof").mkdir(parents=True)
    (share / "bash-completion/completions").mkdir(parents=True)
    shutil.copy(source / "completion/virt-uprof.bash", share / "bash-completion/completions/virt-uprof")
    # The wrapper passes calls of the completion to the real virsh. Any other run only writes its
    # arguments to a file.
    wrapper = suite.folder / "bin/virsh"
    wrapper.write_text(
        "#!/bin/bash\n"
        'for word; do [[ $word != @(complete|help) ]] || exec %s "$@"; done\n'
        'printf "%%s\\0" "$@" >"$UPROF_ARGUMENTS.new" && mv "$UPROF_ARGUMENTS.new" "$UPROF_ARGUMENTS"\n'
        % shutil.which("virsh")
    )
    wrapper.chmod(0o755)
    return shutil.copy(source / "virsh-uprof.sh", share / "virt-uprof")


def main():
    suite = Suite(os.path.abspath(sys.argv[1]), sys.argv[3] if len(sys.argv) > 3 else None)
    scripts = pathlib.Path(sys.argv[2]).resolve() / "virsh-ext/completion"
    (suite.folder / "here/a file;x").write_text("")
    (suite.folder / "zsh").mkdir()
    shutil.copy(scripts / "virt-uprof.zsh", suite.folder / "zsh/_virt-uprof")
    fish_folder = suite.folder / "home/.config/fish/completions"
    fish_folder.mkdir(parents=True)
    shutil.copy(scripts / "virt-uprof.fish", fish_folder)
    # If this folder is missing, fish fills it in a background process that outlives the shell.
    (suite.folder / "home/.local/share/fish/generated_completions").mkdir(parents=True)

    test_program(suite)
    test_hanging_daemon(suite)
    test_shell(
        suite,
        "bash",
        ["bash", "--norc", "--noprofile", "-i"],
        ["bind 'set completion-query-items 0'", "bind 'set bell-style none'", "source '%s'" % (scripts / "virt-uprof.bash")],
    )
    test_shell(
        suite,
        "zsh",
        ["zsh", "-f", "-i"],
        ["fpath=('%s' $fpath)" % (suite.folder / "zsh"), "autoload -U compinit; compinit -u -D", "unsetopt list_beep zle_bracketed_paste"],
    )
    test_shell(suite, "fish", ["fish", "-i"], ["set fish_greeting"])
    function = prepare_virsh(suite, scripts.parent)
    has_own = pathlib.Path(BASH_COMPLETION).exists()
    test_virsh(
        suite,
        "bash",
        ["bash", "--norc", "--noprofile", "-i"],
        ["bind 'set completion-query-items 0'", "bind 'set bell-style none'"]
        + (["source '%s'" % BASH_COMPLETION] if has_own else []) + ["source '%s'" % function],
        ("-c test:///default domna", ["-c", "test:///default", "domname"]) if has_own else None,
    )
    test_virsh(
        suite,
        "zsh",
        ["zsh", "-f", "-i"],
        ["fpath=('%s' $fpath)" % (suite.folder / "zsh"), "autoload -U compinit; compinit -u -D",
         "unsetopt list_beep zle_bracketed_paste", "source '%s'" % function],
        ("-c test:///default domna", ["-c", "test:///default", "domname"]),
    )
    hacked = sorted(path.name for path in (suite.folder / "here").iterdir() if path.name.startswith("hacked"))
    suite.say("nothing-was-run", ["a name was run: %r" % hacked] if hacked else [])

    shutil.rmtree(suite.folder)
    print("1..%d" % suite.count)
    return 1 if suite.failed else 0


sys.exit(main())
