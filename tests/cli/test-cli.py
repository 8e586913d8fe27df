#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-cli.py PROGRAM MAKE-CAPTURE SOURCE-ROOT [PATTERN] - exit codes and exact messages

Runs command lines with libvirt's test driver, without a hypervisor, a network or
privileges. As root the test has a /run of its own, so that it shares no lock with real
runs. As another user it has an XDG_RUNTIME_DIR of its own. Prints TAP.
"""

import fnmatch
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

DEFAULT = "test:///default"
DONE, FAILED, USAGE, DOMAIN, DENIED, USELESS, SOME = 0, 1, 2, 3, 4, 5, 6
NO_ACCESS = "guests of libvirt's driver 'TEST' cannot be sampled"
TRY_HELP = "; try: virt-uprof --help"

# Names that libvirt accepts, and the form in which virt-uprof shows them
NAMES = (
    ("-rf", "-rf"),
    ("a;b", "a;b"),
    ("..", ".."),
    (".", "."),
    ("a<b", "a<b"),
    ("$(id)", "$(id)"),
    ("a%n%s", "a%n%s"),
    ("tab\there", "tab?here"),
    ("c1\u009bm", "c1?m"),
    (" blanks ", " blanks "),
    ("\u202eevil", "?evil"),
    ("12", "12"),  # This is the twelfth domain, so 12 is also its id.
    ('quote"\\', 'quote"\\'),
    ("n" * 5000, "n" * 1021 + "..."),
)
SHUT_OFF, PAUSED = 5, 3  # virDomainState

# Formatters must not fold these tables.
# fmt: off
USAGE_CASES = (
    # command line, message; None: any message
    ("", "no DOMAIN is given; to list them: virt-uprof list"),
    ("record", "no DOMAIN is given; to list them: virt-uprof list"),
    ("dump", "no DOMAIN is given; to list them: virt-uprof list"),
    ("dmesg", "no DOMAIN is given; to list them: virt-uprof list"),
    ("ps", "no DOMAIN is given; to list them: virt-uprof list"),
    ("symbols", "no DOMAIN is given; to list them: virt-uprof list"),
    ("symbols -o x.svg x", "--output does not belong to 'symbols'"),
    ("ps --state Q x", "--state 'Q' is not letters of states, of RSDTtXZPI"),
    ("ps --state= x", "--state '' is not letters of states, of RSDTtXZPI"),
    ("dump --tasks=DD0 x", "--tasks 'DD0' is not letters of states, of RSDTtXZPI"),
    ("ps --process ( x", "--process '(' is not a regular expression"),
    ("ps --sort self x", "--sort self does not belong to 'ps'"),
    ("top --sort wait x", "--sort wait does not belong to 'top'"),
    ("ps --tasks x", "--tasks does not belong to 'ps'"),
    ("dump --process re x", "--process needs --tasks or --blocked"),
    ("ps -o x.svg x", "--output does not belong to 'ps'"),
    ("report", "'report' needs a FILE: a capture, folded stacks or pprof; - reads stdin"),
    ("list web-1", "'list' takes no domain: it lists them all"),
    ("record --all web-1", "--all takes no domains"),
    ("--rate 0 x", "--rate '0' is not 1 to 20000 (per second)"),
    ("--rate=-5 x", "--rate '-5' is not 1 to 20000 (per second)"),
    ("-F 010x x", "--rate '010x' is not 1 to 20000 (per second)"),
    ("--frequency 20001 x", "--rate '20001' is not 1 to 20000 (per second)"),
    ("-F 1e9 x", "--rate '1e9' is not 1 to 20000 (per second)"),
    ("-F max x", "--rate 'max' is not 1 to 20000 (per second)"),
    ("--rate= x", "--rate '' is not 1 to 20000 (per second)"),
    ("-d 10q x", "--duration '10q' is not a time such as 10s, 500ms, 1.5h or 2d, up to 30d; 0: until stopped"),
    ("--duration 99999h x", "--duration '99999h' is not a time such as 10s, 500ms, 1.5h or 2d, up to 30d; 0: until stopped"),
    ("--budget 0 x", "--budget '0' is not 0.1 to 100 (percent)"),
    ("--budget 5% x", "--budget '5%' is not 0.1 to 100 (percent)"),
    ("--vcpu 3-1 x", "--vcpu '3-1' is not numbers and ranges, such as 0,2-3"),
    ("--vcpu= x", "--vcpu '' is not numbers and ranges, such as 0,2-3"),
    ("--max-depth 0 x", "--max-depth '0' is not 1 to 1024"),
    ("--max-depth 1025 x", "--max-depth '1025' is not 1 to 1024"),
    ("--max-pause 0 x", "--max-pause '0' is not a duration such as 50ms, up to 1s; with --pause up to 10s"),
    ("ps --pause --max-pause 10001ms x", "--max-pause '10001ms' is not a duration such as 50ms, up to 1s; with --pause up to 10s"),
    ("--max-pause 1001ms x", "--max-pause above 1s needs --pause"),
    ("ps --max-pause 2s x", "--max-pause above 1s needs --pause"),
    ("--pause x", "--pause does not belong to 'record'"),
    ("dmesg --pause x", "--pause does not belong to 'dmesg'"),
    ("dump --pause x", "--pause needs --tasks or --blocked"),
    ("ps --pause --no-pause x", "--pause holds the whole guest: leave out --no-pause"),
    ("dump --tasks --pause --access direct x", "--pause holds the whole guest: leave out --access direct"),
    ("--rows 0 report x", "--rows '0' is not 1 to 1000000"),
    ("-n 1000001 report x", "--rows '1000001' is not 1 to 1000000"),
    ("--access kvm x", "--access 'kvm' is not auto, direct, monitor or xen"),
    ("--access direct --no-pause x", "--access direct holds a vCPU for each sample: leave out --no-pause"),
    ("--idle=x y", "--idle 'x' is not 'stack'"),
    ("--idle=stacks y", "--idle 'stacks' is not 'stack'"),
    ("--idle", "no DOMAIN is given; to list them: virt-uprof list"),
    ("record --wait", "no DOMAIN is given; to list them: virt-uprof list"),
    ("-d 1ms x", "no sample fits into 1 ms at 99 Hz: use a longer -d or a higher -F"),
    ("-d 0.9s -F 1 x", "no sample fits into 900 ms at 1 Hz: use a longer -d or a higher -F"),
    ("--wait=x y", "--wait 'x' is not a time such as 10s, 500ms, 1.5h or 2d, up to 30d; 0: until stopped"),
    ("list --wait", "--wait does not belong to 'list'"),
    ("dump --wait=5s x", "--wait does not belong to 'dump'"),
    ("dump --idle x", "--idle does not belong to 'dump'"),
    ("report --wait x", "--wait does not belong to 'report'"),
    ("report --waits x", "--waits does not belong to 'report'"),
    ("collect --waits", "--waits does not belong to 'collect'"),
    ("top --waits x", "--waits does not belong to 'top'"),
    ("watch --waits x", "--waits does not belong to 'watch'"),
    ("--waits -o - x", "--waits needs a file for the waits: use -o FILE.svg, .folded, .json or .pb.gz"),
    ("--waits -o x.perf -o x.meta.json x", "--waits needs a file for the waits: use -o FILE.svg, .folded, .json or .pb.gz"),
    ("--waits --capture x.capture x", "--waits needs a file for the waits: use -o FILE.svg, .folded, .json or .pb.gz"),
    ("--waits -o x.svg -o x.waits.svg x", "--waits writes 'x.waits.svg', which -o names, too"),
    ("--debug-dir /nonexistent x", "--debug-dir '/nonexistent' is not a folder"),
    ("--debug-dir= x", "--debug-dir '' is not a folder"),
    ("--sysroot /nonexistent x", "--sysroot '/nonexistent' is not a folder"),
    ("list --sysroot / x", "--sysroot does not belong to 'list'"),
    ("-s app@ x", "--symbols 'app@' is not FILE, or FILE@BASE with BASE in hexadecimal"),
    ("-s app@12g4 x", "--symbols 'app@12g4' is not FILE, or FILE@BASE with BASE in hexadecimal"),
    ("-s app@10000000000000000 x", "--symbols 'app@10000000000000000' is not FILE, or FILE@BASE with BASE in hexadecimal"),
    ("list --lines", "--lines does not belong to 'list'"),
    ("list --no-demangle", "--no-demangle does not belong to 'list'"),
    ("list --debug-dir /", "--debug-dir does not belong to 'list'"),
    ("--unwind orc x", "--unwind 'orc' is not auto, cfi or fp"),
    ("-f html x", "--format 'html' is not one of: folded folded.gz svg pprof speedscope perf meta capture"),
    ("--format png x", "--format 'png' is not one of: folded folded.gz svg pprof speedscope perf meta capture"),
    ("-o= x", None),
    ("--output= x", "--output needs a file name"),
    ("--capture= x", "--capture needs a file name"),
    ("--nonsense x", "unknown option '--nonsense'"),
    ("--Rate 5 x", "unknown option '--Rate' (did you mean --rate?)"),
    ("--rat 5 x", "unknown option '--rat' (did you mean --rate?)"),
    ("--durration=5 x", "unknown option '--durration' (did you mean --duration?)"),
    ("-Z x", "unknown option '-Z'"),
    ("-r 50 x", "unknown option '-r': rates are given with -F"),
    ("-t 5 x", "unknown option '-t': durations are given with -d"),
    ("-T 5 x", "unknown option '-T': durations are given with -d"),
    ("--time 5 x", "unknown option '--time': durations are given with -d"),
    ("-p 5 x", "unknown option '-p': a domain is given by its name, UUID or id"),
    ("-g x", "unknown option '-g': call stacks are always taken"),
    ("help nothing", "no command 'nothing'"),
    ("help lst", "no command 'lst' (did you mean 'list'?)"),
    ("dmesg --vcpu 0 x", "--vcpu does not belong to 'dmesg'"),
    ("help list dump", "'help' takes one COMMAND"),
    ("-o %x.svg x", "-o '%x.svg': of the letters after %, only %d, %t, %u and %% have a meaning"),
    ("-o a.svg -o a.svg x", "'a.svg' is named twice"),
    ("-f folded -o z.svg x", "'z.svg' ends in .svg, and -f says folded: leave out -f, or rename the file"),
    ("-f folded -o z3 -o z4.svg x", "'z4.svg' ends in .svg, and -f says folded: leave out -f, or rename the file"),
    ("report -f svg -o z.folded x", "'z.folded' ends in .folded, and -f says svg: leave out -f, or rename the file"),
    ("report -o %d.svg x", "%d has no meaning for 'report': give a plain file name instead of '%d.svg'"),
    ("report -o r-%%-%t.svg x", "%t has no meaning for 'report': give a plain file name instead of 'r-%%-%t.svg'"),
    ("diff -o %u.svg x y", "%u has no meaning for 'diff': give a plain file name instead of '%u.svg'"),
    ("-o x.html x", "'x.html': there is no HTML; .svg is the interactive picture"),
    ("-o x.pb x", "'x.pb': pprof is written compressed, as .pb.gz"),
    ("-o run x", "'run' is a folder; for a file in it: -o 'run/%d.svg'"),
    ("report -o run x", "'run' is a folder; for a file in it: -o 'run/NAME.svg'"),
    ("-f x.svg x", "--format 'x.svg' is not one of: folded folded.gz svg pprof speedscope perf meta capture "
                   "(-f is the format, and -o names the file)"),
    ("x --rate", "--rate: missing argument"),
    ("list --rate 5", "--rate does not belong to 'list'"),
    ("list --per-vcpu", "--per-vcpu does not belong to 'list'"),
    ("report --connect test:///default x", "--connect does not belong to 'report'"),
    ("report --capture y x", "--capture does not belong to 'report'"),
    ("dump -o y.folded x", "--output does not belong to 'dump'"),
    ("record --heal x", "--heal does not belong to 'record'"),
    ("check --all", "--all does not belong to 'check'"),
    ("dump --frequency 5 x", "--rate does not belong to 'dump'"),
    ("-o - -o - x", "only one output can go to stdout"),
    ("top --sort name x", "--sort 'name' is not self or total; for ps: pid, cpu or wait"),
    ("top --by pid x", "--by 'pid' is not function, vcpu, process or cgroup"),
    ("record --by process x", "--by does not belong to 'record'"),
    ("report --by process --focus f x", "--focus is about a function: leave out --by"),
    ("report --annotate f --focus g x", "--annotate shows one function: leave out --focus, --by and --per-vcpu"),
    ("report --annotate f --by process x", "--annotate shows one function: leave out --focus, --by and --per-vcpu"),
    ("report --annotate f --exclude g x", "--annotate counts all samples: leave out --include and --exclude"),
    ("report --annotate f x y", "--annotate needs one FILE"),
    ("report --annotate f --since today x", "--annotate needs one FILE"),
    ("diff --annotate f x y", "--annotate does not belong to 'diff'"),
    ("top --sort self --by process x", "--sort self is about functions: leave out --by"),
    ("top --by process --sort total --sort self x", "--sort self is about functions: leave out --by"),
    ("diff --pids x y", "--pids does not belong to 'diff'"),
    ("--samples 0 x", "--samples '0' is not 1 to 1000000000"),
    ("top --samples 9 x", "--samples does not belong to 'top'"),
    ("top --rounds 0 x", "--rounds '0' is not 1 to 1000000"),
    ("top", "no DOMAIN is given; to list them: virt-uprof list"),
    ("top -o x.svg x", "--output does not belong to 'top'"),
    ("top -d 3 x", "--duration does not belong to 'top' (did you mean --rounds?)"),
    ("top --json x", "--json does not belong to 'top'"),
    ("record --batch x", "--batch does not belong to 'record'"),
    ("report --sort self x", "--sort does not belong to 'report'"),
    ("-o - --json x", "--json and '-o -' both write to stdout"),
    ("-f capture -o - x", "a capture is written by 'record', to a file"),
    ("report -f capture -o y x", "a capture is written by 'record', to a file"),
    ("watch", "no DOMAIN is given; to list them: virt-uprof list"),
    ("watch --when busy x", "--when 'busy': expected such as 'busy > 80 %', 'function NAME > 30 %' or 'crash'"),
    ("watch --when busy>101 x", "--when 'busy>101': a share is 0.1 to 100 (percent)"),
    ("watch --when load>3 x", "--when 'load>3': it begins with busy, vcpu, function or process, or is the name of an event"),
    ("watch --keep 5s x", "--keep '5s' is not a time from 10s to 1h"),
    ("watch --after 2h x", "--after '2h' is not a time of up to 1h"),
    ("watch --keep-memory 0 x", "--keep-memory '0' is not 1 to 1024"),
    ("watch -o - x", "'watch' writes files, not to stdout"),
    ("watch -f capture -o y x", "a capture is written by 'record', to a file"),
    ("watch -o a.folded x y", "several domains need %d or %u in -o"),
    ("watch -d 5 x", "--duration does not belong to 'watch'"),
    ("watch --lines x", "--lines does not belong to 'watch'"),
    ("record --when crash x", "--when does not belong to 'record'"),
    ("-o a.folded x y", "several domains need %d or %u in -o"),
    ("--all -o a.folded", "several domains need %d or %u in -o"),
)
# fmt: on

ENDING = (
    "virt-uprof: cannot tell the format of '%s'; use -f or one of .folded .folded.gz .svg .pb.gz .json .perf .meta.json .capture"
)


class Suite:
    """Runs the program and counts failures."""

    def __init__(self, program, pattern):
        self.prefix = []
        self.program = program
        self.pattern = pattern
        self.count = 0
        self.failed = 0
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="uprof-cli-"))
        self.environment = dict(os.environ, LC_ALL="C", XDG_RUNTIME_DIR=str(self.folder / "run"))
        self.environment.pop("LIBVIRT_DEFAULT_URI", None)
        (self.folder / "run").mkdir(mode=0o700)

    def run(self, *words, **options):
        return subprocess.run(
            [*self.prefix, self.program, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self.folder,
            env=self.environment,
            timeout=60,
            check=False,
            **options,
        )

    def say(self, name, faults):
        self.count += 1
        self.failed += bool(faults)
        print("%s %d %s" % ("not ok" if faults else "ok", self.count, name.replace("#", "_")))
        for fault in faults:
            print("# " + fault.replace("\n", "\n# "))

    def skip(self, name, why):
        self.count += 1
        print("ok %d %s # SKIP %s" % (self.count, name, why))

    def expect(self, name, words, code, stderr="", stdout=""):
        """Checks a run. @stderr and @stdout are patterns of the complete text; None: any text."""
        if self.pattern and not fnmatch.fnmatchcase(name, self.pattern):
            return None
        done = self.run(*words)
        faults = check_bytes(done)
        if done.returncode != code:
            faults.append("exit code %d, not %d: %r" % (done.returncode, code, done.stderr))
        for what, got, pattern in (("stderr", done.stderr, stderr), ("stdout", done.stdout, stdout)):
            text = got.decode("utf-8", "replace").rstrip("\n")
            if pattern is not None and text != pattern and not fnmatch.fnmatchcase(text, pattern):
                faults.append("%s is %r and not %r" % (what, text, pattern))
        self.say(name, faults)
        return done


def check_bytes(done):
    """Checks that all output is UTF-8 in complete lines, without control characters."""
    faults = []
    for what, got in (("stdout", done.stdout), ("stderr", done.stderr)):
        try:
            text = got.decode("utf-8")
        except UnicodeDecodeError:
            faults.append("%s is not UTF-8: %r" % (what, got))
            continue
        if any((ord(c) < 0x20 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c == "\u202e" for c in text):
            faults.append("%s has control characters: %r" % (what, got))
        if text and not text.endswith("\n"):
            faults.append("%s ends in mid-line: %r" % (what, got))
    return faults


def escape_xml(text):
    return "".join("&#%d;" % ord(c) if c in "&<>\"'" or ord(c) < 0x20 else c for c in text)


def write_node(path, domains):
    """Writes a host for libvirt's test driver, and returns its URI. @domains: (name, uuid, state or 0)"""
    parts = ["<node>"]
    for name, uuid, state in domains:
        parts.append(
            "<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>"
            "<name>%s</name><uuid>%s</uuid><memory>8192</memory><vcpu>2</vcpu>"
            "<os><type arch='x86_64'>hvm</type></os>%s</domain>"
            % (
                escape_xml(name),
                uuid,
                "<test:runstate>%d</test:runstate>" % state if state else "",
            )
        )
    parts.append("</node>")
    path.write_text("\n".join(parts), encoding="utf-8")
    return "test://" + str(path)


def make_uuid(number):
    return "4dea22b3-1d52-48f3-a516-%012x" % number


def test_usage(suite):
    for line, message in USAGE_CASES:
        expected = "virt-uprof: %s%s" % (message, TRY_HELP) if message else None
        suite.expect("usage/%s" % (line or "nothing"), line.split(), USAGE, expected)
    for path in ("out", "x.png", "x.txt", "x.svg.gz", "\x1b[31m;%%s"):
        shown = path.replace("\x1b", "?")
        suite.expect("ending/%s" % shown, ["-o", path, "x"], USAGE, (ENDING % shown).replace("[", "[[]"))
    for line in ("top --by process x", "top --by process --sort total x", "top --by process --by function --sort self x"):
        said = "virt-uprof: 'top' needs a terminal; in a script use --batch --rounds N"
        suite.expect("usage/%s" % line, line.split(), USAGE, said)
    suite.expect(
        "usage/hostile-value",
        ["--rate", "\x1b]0;pwned\x07\n%n", "x"],
        USAGE,
        "virt-uprof: --rate '?]0;pwned??%n' is not 1 to 20000 (per second)" + TRY_HELP,
    )
    suite.expect(
        "usage/hostile-option",
        ["--\x1b[31m", "x"],
        USAGE,
        "virt-uprof: unknown option '--?[31m'" + TRY_HELP,
    )


def test_help(suite, root):
    source = (root / "src/cli/options.c").read_text()
    longs = re.findall(r'^    \{ "([a-z-]+)", \'', source, re.M)
    spelled_again = re.findall(r'^    \{ \.long_name = "([a-z-]+)"', source, re.M)
    commands = re.findall(r'^    \{ "([a-z]+)", UPROF_COMMAND_', (root / "src/cli/main.c").read_text(), re.M)
    exits = (root / "src/cli/exit.c").read_text()
    codes = re.findall(r"UPROF_EXIT_\w+ = (\d+)", (root / "src/cli/exit-priv.h").read_text())
    texts = re.findall(r'\{ UPROF_EXIT_\w+,\s+"([^"]+)" \}', exits)
    def check(words, missing):
        """Runs @words, which must print help. @missing: yields faults of its text."""
        done = suite.run(*words)
        text = done.stdout.decode()
        faults = check_bytes(done) + list(missing(text))
        if done.returncode != DONE or done.stderr:
            faults.append("exit code %d, %r" % (done.returncode, done.stderr))
        faults += ["a line of %d" % len(line) for line in text.splitlines() if len(line) > 100]
        suite.say("help/%s" % " ".join(words), faults)
        return text

    def of_program(text):
        if len(longs) < 20 or len(commands) < 5 or not spelled_again or len(codes) != len(texts):
            yield "the tables could not be read"
        yield from ("no %s" % name for name in commands if "\n  %s " % name not in text)
        yield from ("no --%s" % name for name in ("duration", "output", "symbols", "quiet") if " --%s" % name not in text)
        yield from ("--%s" % name for name in ("focus", "annotate", "store", "rounds") if " --%s" % name in text)
        yield from ("no exit code %s" % code for code in codes if "\n  %-3s " % code not in text)
        yield from ("no '%s'" % line for line in texts if line not in text)

    def of_list(text):
        if not text.startswith("virt-uprof list [OPTION...] \nlist all domains"):
            yield "no usage"
        yield from ("no %s" % part for part in ("What to sample:\n  -c, --connect=URI", "      --all", "General:\n") if part not in text)
        yield from ("--%s" % name for name in longs if name not in ("connect", "all", "json", "config", "store", "quiet", "verbose", "version", "help")
                    and " --%s" % name in text)
        if "Exit codes" in text or "Symbols:" in text:
            yield "more than the options of list"

    for words in (["--help"], ["-h"], ["-?"], ["--help", "--nonsense"], ["help"]):
        check(words, of_program)
    for words in (["list", "--help"], ["help", "list"], ["--help", "list"], ["-h", "list", "--nonsense"]):
        check(words, of_list)
    # Each option is in the help of a command, but no second spelling of it.
    everything = "".join(suite.run("help", name).stdout.decode() for name in commands)
    suite.say("help/everything", ["no --%s" % name for name in longs if " --%s" % name not in everything]
              + ["--%s again" % name for name in spelled_again if " --%s=" % name in everything])
    for words in (["--version"], ["-V"], ["list", "-V"]):
        suite.expect("version/%s" % " ".join(words), words, DONE, "", "virt-uprof [0-9]*.[0-9]*.[0-9]*")


def test_default(suite):
    no_access = "virt-uprof: test: " + NO_ACCESS
    suite.expect("record/no-access", ["-c", DEFAULT, "test"], USELESS, no_access)
    suite.expect("record/by-id", ["-c", DEFAULT, "record", "1"], USELESS, no_access)
    suite.expect(
        "record/by-uuid",
        ["-c", DEFAULT, "6695eb01-f6a4-8304-79aa-97f2502e193f"],
        USELESS,
        no_access,
    )
    suite.expect("record/quiet", ["-q", "-c", DEFAULT, "test"], USELESS, no_access)
    suite.expect("record/all", ["-c", DEFAULT, "--all", "-o", "%d.folded"], USELESS, no_access)
    suite.expect("dump/no-access", ["-c", DEFAULT, "dump", "test"], USELESS, no_access)
    for command in ("dump", "ps", "dmesg", "symbols"):
        suite.expect(command + "/all", ["-c", DEFAULT, command, "--all"], USELESS, no_access)
    suite.expect("dump/json", ["-c", DEFAULT, "dump", "--json", "test"], USELESS, no_access)
    suite.expect("dmesg/no-access", ["-c", DEFAULT, "dmesg", "test"], USELESS, no_access)
    for words in (["ps"], ["ps", "--json"], ["dump", "--tasks"], ["dump", "--blocked"]):
        suite.expect("-".join(words), ["-c", DEFAULT, *words, "test"], USELESS, no_access)
    (suite.folder / "x.folded").touch()
    suite.expect(
        "ps/file",
        ["-c", DEFAULT, "ps", "x.folded"],
        DOMAIN,
        "virt-uprof: 'x.folded' is a file, and this command takes domains: no domain 'x.folded' on "
        "test:///default; to list them: virt-uprof list",
    )
    (suite.folder / "x.folded").unlink()
    for command in ("record", "dump", "dmesg", "ps", "symbols"):
        suite.expect(
            command + "/unknown",
            ["-c", DEFAULT, command, "tset"],
            DOMAIN,
            "virt-uprof: no domain 'tset' on test:///default (did you mean 'test'?)",
        )
        suite.expect(
            command + "/unknown-at-all",
            ["-c", DEFAULT, command, "\x1b[31mweb;1"],
            DOMAIN,
            "virt-uprof: no domain '?[31mweb;1' on test:///default; "
            "to list them: virt-uprof list",
        )
    suite.expect("record/comma", ["-c", DEFAULT, "-o", "%d.folded", "test,", "nobody"], DOMAIN,
                 "virt-uprof: no domain 'test,' on test:///default (did you mean 'test'?)\nvirt-uprof: no domain 'nobody' on *")
    for time in ("1.5", "0.5", "1d", "1.5h"):
        suite.expect("record/duration/%s" % time, ["-c", DEFAULT, "-d", time, "test"], USELESS, no_access)
    for word, meant in (("lst", "list"), ("recrod", "record"), ("chek", "check")):
        suite.expect("record/command/%s" % word, ["-c", DEFAULT, word, "test"], USAGE,
                     "virt-uprof: no command or domain '%s' (did you mean '%s'?)" % (word, meant))
    suite.expect("record/command-is-named", ["-c", DEFAULT, "record", "lst"], DOMAIN, "virt-uprof: no domain 'lst' on *")
    for words in (["list", "--all"], ["list"]):
        suite.expect(" ".join(words), ["-c", DEFAULT, *words], DONE, "",
                     "name * state * id vCPUs  access   collected last round * symbols\ntest * running * 1     2  - * no * never * -\n*access: *")
    empty = write_node(suite.folder / "empty.xml", ())
    suite.expect("list/nobody", ["-c", empty, "list"], DONE, "virt-uprof: no domains on test://*", "name *")
    suite.expect("list/nobody/json", ["-c", empty, "list", "--json"], DONE, "", "[[]]")
    suite.expect("list/bad-config", ["list", "--config", "nothing.xml"], FAILED, "virt-uprof: cannot read configuration 'nothing.xml': *")
    off = write_node(suite.folder / "list-off.xml", (("off", make_uuid(2), SHUT_OFF),))
    suite.expect("list/off", ["-c", off, "list"], DONE, "", "name *\noff * shut off * -     2  - * no * never * -")
    suite.expect("list/verbose", ["-c", off, "-v", "list"], DONE, "", "name *\noff *\n * access: *\n * machine: TEST, x86_64")
    # Behind "--" stands a command if a domain is in front of it; otherwise domains, and perhaps a command.
    for words, code, said in ((["record", "test", "--", "true"], USELESS, no_access), (["--", "record", "test"], USELESS, no_access),
                              (["record", "--", "test", "--", "true"], USELESS, no_access),
                              (["test", "--", "no-such-program"], 127, "virt-uprof: cannot run 'no-such-program': there is no such program"),
                              (["--all", "--", "/nonexistent/\x1b"], 127, "virt-uprof: cannot run '/nonexistent/?': there is no such program"),
                              (["record", "--", "list"], DOMAIN, "virt-uprof: no domain 'list' on *")):
        suite.expect("command/%s" % " ".join(words), ["-c", DEFAULT, "-o", "%d.folded", *words], code, said)
    suite.expect("stack", ["-c", DEFAULT, "stack", "test"], USELESS, no_access)
    suite.expect("unwind/dwarf", ["-c", DEFAULT, "--unwind", "dwarf", "test"], USELESS, no_access)
    for alias in ("flamegraph", "json"):
        suite.expect("format/%s" % alias, ["-c", DEFAULT, "-f", alias, "-o", "x", "test"], USELESS, no_access)
    suite.expect(
        "record/two-unknown",
        ["-c", DEFAULT, "record", "-o", "-", "xxxxxx", "yyyyyy"],
        DOMAIN,
        "virt-uprof: no domain 'xxxxxx' on *\nvirt-uprof: no domain 'yyyyyy' on *",
    )
    (suite.folder / "bad.xml").write_text("<node>")
    bad = "test://%s" % (suite.folder / "bad.xml")
    suite.expect("connection/bad-uri", ["-c", bad, "list"], DENIED, "virt-uprof: no connection to '%s': *:1: Premature end of data *[!)]" % bad)
    for uri in ("qemu+unix:///system?socket=/nonexistent/socket", "nonsense://x"):
        for words in (["list"], ["record", "x"], ["dump", "x"]):
            suite.expect(
                "connection/%s/%s" % (words[0], uri),
                ["-c", uri] + words,
                DENIED,
                "virt-uprof: no connection to '%s': * (is its daemon running, and may you use it? "
                "try: virsh -c %s list)" % (uri.replace("?", "[?]"), shlex.quote(uri).replace("?", "[?]")),
            )


def test_optional(suite):
    """An optional argument follows '='; the next word is always a domain."""
    no_access = "virt-uprof: test: " + NO_ACCESS
    for option in ("--idle", "--idle=", "--idle=stack", "--wait", "--wait=", "--wait=5s", "--wait=0"):
        for words in ([option, "test"], ["test", option], ["record", option, "test"]):
            suite.expect("optional/%s" % " ".join(words), ["-c", DEFAULT] + words, USELESS, no_access)
    # After two dashes every word is a domain.
    for word in ("--idle", "--wait", "--idle=stack"):
        suite.expect(
            "optional/-- %s" % word,
            ["-c", DEFAULT, "record", "--", word],
            DOMAIN,
            "virt-uprof: no domain '%s' on test:///default; to list them: virt-uprof list" % word,
        )
    suite.expect(
        "optional/--wait -- --idle",
        ["-c", DEFAULT, "--wait=1ms", "-q", "--", "--idle"],
        DOMAIN,
        "virt-uprof: no domain '--idle' on test:///default; to list them: virt-uprof list; waited 1 ms for it",
    )


def test_wait(suite):
    no_access = "virt-uprof: runs: " + NO_ACCESS
    uri = write_node(
        suite.folder / "wait.xml", (("runs", make_uuid(1), 0), ("off", make_uuid(2), SHUT_OFF))
    )
    waiting = "virt-uprof: waiting for '%s' to start"
    unknown = "virt-uprof: waiting for '%s', which libvirt does not know yet; Ctrl-C ends"
    never = "virt-uprof: '%s' has not started in 50 ms; start it with: virsh -c test://* start %s"
    missing = "virt-uprof: no domain '%s' on test://*; waited 50 ms for it"
    for word in ("off", make_uuid(2)):
        suite.expect("wait/%s" % word, ["-c", uri, "--wait=50ms", word], DOMAIN, waiting % word + "\n" + never % (word, word))
        suite.expect("wait/quiet/%s" % word, ["-q", "-c", uri, "--wait=50ms", word], DOMAIN, never % (word, word))
    for word in ("tset", make_uuid(3)):
        suite.expect("wait/%s" % word, ["-c", uri, "--wait=50ms", word], DOMAIN, unknown % word + "\n" + missing % word)
        suite.expect("wait/quiet/%s" % word, ["-q", "-c", uri, "--wait=50ms", word], DOMAIN, missing % word)
    suite.expect("wait/suggests", ["-q", "-c", uri, "--wait=50ms", "run"], DOMAIN,
                 "virt-uprof: no domain 'run' on test://* (did you mean 'runs'?); waited 50 ms for it")
    # The time of --wait follows "=". Nothing is sampled, and nothing waits.
    for words in (["--wait", "5", "runs"], ["runs", "--wait", "5"], ["--wait", "2m", "off"]):
        time = [word for word in words if word[0] in "25"][0]
        suite.expect("wait/%s" % " ".join(words), ["-c", uri, "-o", "%d.folded", *words], USAGE,
                     "*virt-uprof: '%s' is no domain (did you mean --wait=%s?)" % (time, time))
    # Commands in messages are safe to copy into a shell.
    suite.expect(
        "wait/hostile",
        ["-q", "-c", uri, "--wait=50ms", "$(id)\x1b"],
        DOMAIN,
        missing % "$(id)[?]",
    )
    suite.expect("wait/hostile-off", ["-q", "-c", write_node(suite.folder / "hostile.xml", (("$(id)", make_uuid(9), SHUT_OFF),)),
                                      "--wait=50ms", "$(id)"], DOMAIN, never % ("$(id)", "DOMAIN"))
    suite.expect("wait/runs", ["-c", uri, "--wait=10s", "runs"], USELESS, no_access)
    suite.expect(
        "wait/several",
        ["-c", uri, "--wait=50ms", "-o", "%d.folded", "off", "runs", "tset"],
        USELESS,
        "\n".join(
            (no_access, waiting % "off", unknown % "tset", never % ("off", "off"), missing % "tset")
        ),
    )
    suite.say("wait/leaves-no-file", ["left: %s" % path for path in suite.folder.rglob("*.folded")])


def test_access(suite):
    for words in (["test"], ["record", "test"], ["dump", "test"]):
        suite.expect(
            "access/direct/%s" % " ".join(words),
            ["-c", DEFAULT, "--access", "direct"] + words,
            USELESS,
            "virt-uprof: test: " + NO_ACCESS,
        )
    suite.expect(
        "access/direct/check",
        ["-c", DEFAULT, "check", "--access", "direct", "test"],
        USELESS,
        None,
        "*FAIL  access * %s" % NO_ACCESS,
    )


def test_xen(suite):
    """On a host without Xen the message says what Xen needs. Only Xen domains have numbers."""
    for words in (["list"], ["x"], ["dump", "x"], ["--domid", "7"]):
        suite.expect(
            "xen/missing/%s" % " ".join(words),
            ["-c", "xen:///system"] + words,
            DENIED,
            "virt-uprof: no connection to 'xen:///system': * (this needs root in Xen's dom0, a "
            "libvirt daemon, and the packages libvirt-daemon-driver-xen and virt-uprof-xen; try: "
            "virsh -c xen:///system list)",
        )
    for domid in ("-1", "32752", "x", "0x7", ""):
        suite.expect(
            "xen/domid/%s" % (domid or "empty"),
            ["-c", DEFAULT, "--domid=" + domid],
            USAGE,
            "virt-uprof: --domid '%s' is not 0 to 32751*" % domid,
        )
    for words in (["--domid", "7"], ["dump", "--domid", "7"]):
        suite.expect(
            "xen/domid/elsewhere/%s" % " ".join(words),
            ["-c", DEFAULT] + words,
            USAGE,
            "virt-uprof: --domid 7: only Xen domains of this host have numbers, and the "
            "connection is 'test:///default'; try: -c xen:///system",
        )
    suite.expect(
        "xen/domid/list", ["list", "--domid", "7"], USAGE,
        "virt-uprof: --domid does not belong to 'list'*",
    )
    suite.expect(
        "xen/access-elsewhere", ["-c", DEFAULT, "--access", "xen", "test"], USELESS,
        "virt-uprof: test: *",
    )


def test_states(suite):
    uri = write_node(
        suite.folder / "states.xml",
        (
            ("runs", make_uuid(1), 0),
            ("off", make_uuid(2), SHUT_OFF),
            ("held", make_uuid(3), PAUSED),
            ("-off;$(id)", make_uuid(4), SHUT_OFF),
            ("1", make_uuid(5), 0),
        ),
    )
    shut = "virt-uprof: domain '%s' is shut off; start it with: virsh -c test://* start %s"
    suite.expect("state/off", ["-c", uri, "off"], DOMAIN, shut % ("off", "off"))
    suite.expect("state/off/dump", ["-c", uri, "dump", "off"], DOMAIN, shut % ("off", "off"))
    # Commands in messages are safe to copy into a shell.
    suite.expect(
        "state/off/hostile",
        ["-c", uri, "--", "-off;$(id)"],
        DOMAIN,
        shut % ("-off;$(id)", make_uuid(4)),
    )
    # Only QEMU's monitor says that a domain is paused, and the test driver has no monitor.
    suite.expect("state/paused", ["-c", uri, "held"], USELESS, "virt-uprof: held: " + NO_ACCESS)
    suite.expect(
        "state/id-and-name",
        ["-c", uri, "1"],
        DOMAIN,
        "virt-uprof: '1' is the id of one domain and the name of another; give the UUID "
        "instead: %s (id) or %s (name)" % (make_uuid(1), make_uuid(5)),
    )
    suite.expect(
        "state/some-fail",
        ["-c", uri, "record", "-o", "-", "runs", "off"],
        USELESS,
        "virt-uprof: runs: %s\n%s" % (NO_ACCESS, shut % ("off", "off")),
    )
    suite.expect(
        "state/all-with-locks",
        ["-c", write_node(suite.folder / "none.xml", (("off", make_uuid(2), SHUT_OFF),)), "--all", "-o", "-"],
        DOMAIN,
        "virt-uprof: no domain runs on test://*/none.xml",
    )
    suite.expect("state/dump-all/none", ["-c", "test://%s/none.xml" % suite.folder, "dump", "--all"], DOMAIN,
                 "virt-uprof: no domain runs on test://*/none.xml")
    # Paused domains are read, too.
    done = suite.run("-c", uri, "dump", "--all")
    said = sorted(done.stderr.decode().splitlines())
    suite.say("state/dump-all", [] if said == ["virt-uprof: %s: %s" % (name, NO_ACCESS) for name in ("1", "held", "runs")]
              and done.returncode == USELESS else [repr(done)])


def test_names(suite):
    domains = [(name, make_uuid(i + 100), 0) for i, (name, _) in enumerate(NAMES)]
    uri = write_node(suite.folder / "names.xml", domains)
    before = sorted(os.listdir(suite.folder)), sorted(os.listdir(suite.folder / "run"))
    done = suite.expect("list/hostile", ["-c", uri, "list"], DONE, "", None)
    if done:
        text = done.stdout.decode()
        suite.say(
            "list/hostile/all-there",
            ["no %r" % shown for _, shown in NAMES if "\n" + shown not in text],
        )
    done = suite.expect("list/json", ["-c", uri, "list", "--json"], DONE, "", None)
    if done:
        rows = json.loads(done.stdout)
        faults = []
        for name, shown in NAMES:
            found = [row for row in rows if row["name"] == shown]
            if len(found) != 1:
                faults.append("%d times %r" % (len(found), shown))
        members = {"id", "vcpus", "name", "uuid", "state", "driver", "type", "arch", "access", "why"}
        faults += ["members %r" % sorted(row) for row in rows if not members <= set(row)]
        faults += ["vcpus %r" % row for row in rows if row["vcpus"] != 2 or row["access"] != "-"]
        suite.say("list/json/parsed", faults)
    after = sorted(os.listdir(suite.folder)), sorted(os.listdir(suite.folder / "run"))
    suite.say("list/touches-nothing", ["%r became %r" % (before, after)] if before != after else [])
    for name, shown in NAMES:
        short = shown if len(shown) < 30 else shown[:10] + "..."
        suite.expect(
            "record/name/%s" % short,
            ["-c", uri, "-o", "%d.folded", "--", "record", name]
            if name.startswith("-")
            else ["-c", uri, "-o", "%d.folded", "record", name],
            USELESS,
            "virt-uprof: %s: %s" % (shown, NO_ACCESS),
        )
    suite.say(
        "record/leaves-no-file",
        ["left: %s" % path for path in suite.folder.rglob("*") if path.suffix in (".folded", ".tmp")],
    )
    suite.expect("list/quiet", ["-q", "-c", uri, "list"], DONE, "", None)


def test_outputs(suite):
    """An output that cannot be written is reported before a guest is opened."""
    no_access = "virt-uprof: test: " + NO_ACCESS
    folder = suite.folder / "outputs"
    folder.mkdir()
    suite.expect(
        "output/missing-folder",
        ["-c", DEFAULT, "-o", "no/such/x.folded", "test"],
        FAILED,
        "virt-uprof: cannot open the folder of 'no/such/x.folded': No such file or directory",
    )
    suite.expect(
        "output/folder",
        ["-c", DEFAULT, "-f", "folded", "-o", "outputs", "test"],
        FAILED,
        "virt-uprof: cannot write 'outputs': Is a directory",
    )
    folder.chmod(0o777)
    if os.geteuid() == 0:
        suite.expect(
            "output/folder-of-everybody",
            ["-c", DEFAULT, "-o", "outputs/x.folded", "test"],
            FAILED,
            "virt-uprof: the folder of 'outputs/x.folded' may be written by everybody and is not "
            "sticky: root's files are not safe there",
        )
        # Without these capabilities root obeys the modes of folders.
        suite.prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    else:
        suite.skip("output/folder-of-everybody", "only root is in danger there")
    folder.chmod(0o500)
    suite.expect(
        "output/read-only",
        ["-c", DEFAULT, "-o", "outputs/x.folded", "test"],
        FAILED,
        "virt-uprof: cannot write 'outputs/x.folded': Permission denied",
    )
    suite.prefix = []
    folder.chmod(0o700)
    (folder / "x.folded").write_text("old")
    suite.expect("output/stays", ["-c", DEFAULT, "-o", "outputs/x.folded", "test"], USELESS, no_access)
    faults = []
    if sorted(os.listdir(folder)) != ["x.folded"] or (folder / "x.folded").read_text() != "old":
        faults.append("left: %r" % os.listdir(folder))
    suite.say("output/stays/as-it-was", faults)


def test_report(suite, make_capture):
    """Files that `report` reads and writes."""
    subprocess.run([make_capture, "plain", str(suite.folder)], check=True)
    capture, app = "guest.capture", "app"
    no_tasks = "virt-uprof: the capture of web-1 has no tasks: tasks cannot be listed: no Linux kernel was found in the guest's memory"
    for words in (["ps"], ["dump", "--tasks"], ["dump", "--blocked", "--json"]):
        suite.expect("-".join([*words, "capture"]), [*words, capture], USELESS, no_tasks)
    suite.expect("dmesg/capture", ["dmesg", capture], USELESS, "virt-uprof: no Linux kernel was found")
    for words in (["ps"], ["dump", "--tasks"]):
        suite.expect("-".join([*words, "pause"]), [*words, "--pause", capture], USAGE,
                     "virt-uprof: --pause holds a guest: leave it out for a capture")
    suite.expect("ps/no-capture", ["-c", DEFAULT, "ps", app + ".capture"], DOMAIN, None)
    suite.expect(
        "report/table",
        ["report", "-q", "-s", app, capture],
        DONE,
        "",
        "  self   total  function\n  50.0    50.0  work\n  33.3    33.3  copy\n"
        "  16.7    66.7  function_1\n   0.0   100.0  main",
    )
    suite.expect(
        "report/rows",
        ["report", "-q", "-n", "1", "-s", app, capture],
        DONE,
        "",
        "  self   total  function\n  50.0    50.0  work\n3 more functions; -n 4 shows them all",
    )
    suite.expect("report/max-depth", ["report", "-q", "-f", "folded", "--max-depth", "1", "-s", app, capture],
                 DONE, "", "web-1;[[]truncated];copy 2\nweb-1;[[]truncated];function_1 1\nweb-1;[[]truncated];work 3")
    done = suite.expect("report/json", ["report", "-q", "--json", "-s", app, capture], DONE, "", None)
    if done:
        facts = json.loads(done.stdout)
        suite.say("report/json/parsed", [] if facts["samples"]["total"] == 6 else [repr(facts)])
    suite.expect("report/percent", ["report", "-q", "-o", "r%%.folded", "-s", app, capture], DONE)
    suite.say("report/percent/named", [] if (suite.folder / "r%.folded").exists() else [repr(os.listdir(suite.folder))])
    suite.expect("report/to-file", ["report", "-q", "-o", "r.folded", "-o", "r.meta.json", "-s", app, capture], DONE)
    facts = json.loads((suite.folder / "r.meta.json").read_text())
    suite.say("report/to-file/named", [] if facts["files"] == ["r.folded", "r.meta.json"] else [repr(facts)])
    # One line says that all is well. More lines say what is not.
    well = "web-1: 6 samples at 100 Hz, all stacks complete, all names found; each vCPU held 0.2 % of the time or less: median 20 us"
    for case, said, stdout in (
            ("plain", well, None),
            ("missed", well + "\nweb-1: 5 of 11 samples missed: 4 because the host was late, "
                       "1 because a vCPU did not stop in time; the host is busy", None),
            ("all-idle", "web-1: 5 samples, all idle at 100 Hz; each vCPU held 0.2 % of the time or less: median 20 us", "")):
        (suite.folder / case).mkdir()
        subprocess.run([make_capture, case, str(suite.folder / case)], check=True)
        suite.expect("report/says/%s" % case, ["report", "-s", "%s/app" % case, "%s/guest.capture" % case], DONE, said, stdout)
    (suite.folder / "nothing").write_text("")
    suite.expect("report/empty-symbols", ["report", "-s", "nothing", capture], FAILED, "virt-uprof: 'nothing' is empty")
    # A rest is a record that stands for several samples. The sidecar counts all of them.
    rests = suite.folder / "rests"
    rests.mkdir()
    subprocess.run([make_capture, "rests", str(rests)], check=True)
    done = suite.expect(
        "report/rests", ["report", "-q", "--json", "-s", "rests/app", "rests/guest.capture"], DONE, "", None
    )
    if done:
        facts = json.loads(done.stdout)
        suite.say(
            "report/rests/counted",
            []
            if facts["samples"] == {"total": 41, "running": 16, "idle": 25}
            and facts["stacks"] == {"complete": 10, "truncated": 0, "unknown": 6}
            and facts["hold_us"]["count"] == 4
            else [repr(facts)],
        )
    suite.expect(
        "report/dev-full",
        ["report", "-q", "-f", "folded", "-o", "/dev/full", "-s", app, capture],
        FAILED,
        "virt-uprof: cannot write '/dev/full': No space left on device",
    )
    suite.expect(
        "report/missing-folder",
        ["report", "-q", "-o", "no/such/x.folded", "-s", app, capture],
        FAILED,
        "virt-uprof: cannot open the folder of 'no/such/x.folded': No such file or directory",
    )
    suite.expect(
        "report/no-symbol-file",
        ["report", "-s", "nothing.dbg", capture],
        FAILED,
        "virt-uprof: cannot open symbol file 'nothing.dbg': No such file or directory",
    )
    suite.expect("report/symbols-are-capture", ["report", "-s", capture, capture], FAILED,
                 "virt-uprof: 'guest.capture' is neither an ELF file nor text as nm, System.map or kallsyms write it")
    suite.expect("report/symbols-are-folder", ["report", "-s", "run", capture], FAILED,
                 "virt-uprof: 'run' is not a regular file")
    suite.expect("report/no-file", ["report", "nothing.capture"], FAILED,
                 "virt-uprof: *nothing.capture*: No such file or directory")
    suite.expect("report/no-capture", ["report", app], FAILED, "virt-uprof: 'app' is a program; symbols are given with -s")
    suite.expect("report/one-of-two", ["report", "-q", "-s", app, capture, "nothing.capture"], FAILED, None, None)
    for name, to in (("full", "/dev/full"), ("closed", None)):
        if to:
            with open(to, "wb") as full:
                done = subprocess.run([suite.program, "report", "-q", "-s", app, capture], stdout=full,
                                      stderr=subprocess.PIPE, cwd=suite.folder, check=False)
            suite.say("report/stdout-%s" % name, [] if done.returncode == FAILED else [repr(done)])
            continue
        for words in ([], ["-f", "folded"]):
            read, write = os.pipe()
            os.close(read)
            done = subprocess.run([suite.program, "report", "-q", "-s", app, *words, capture], stdout=write,
                                  stderr=subprocess.PIPE, cwd=suite.folder, check=False)
            os.close(write)
            suite.say("report/stdout-%s/%s" % (name, " ".join(words) or "table"),
                      [] if done.returncode == FAILED and not done.stderr else [repr(done)])


def enter_private_run():
    """As root, starts this program again, in a mount namespace with an empty /run."""
    if os.geteuid() != 0 or os.environ.get("UPROF_PRIVATE_RUN"):
        return
    os.environ["UPROF_PRIVATE_RUN"] = "1"
    script = 'mount -t tmpfs tmpfs /run 2>/dev/null; exec "$@"'
    if shutil.which("unshare") and subprocess.run(["unshare", "-m", "true"], check=False).returncode == 0:
        os.execvp("unshare", ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, *sys.argv])


def main():
    enter_private_run()
    program, make_capture, root = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    suite = Suite(os.path.abspath(program), sys.argv[4] if len(sys.argv) > 4 else None)
    try:
        test_usage(suite)
        test_help(suite, root)
        test_default(suite)
        test_optional(suite)
        test_wait(suite)
        test_access(suite)
        test_xen(suite)
        test_states(suite)
        test_names(suite)
        test_outputs(suite)
        test_report(suite, os.path.abspath(make_capture))
    finally:
        shutil.rmtree(suite.folder)
    print("1..%d" % suite.count)
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main())
