#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
terminal.py COMMAND... - runs a full-screen program on a new terminal

Ends the program by a key and by signals, stops it, and puts it into the background as a shell does.
Each time the old settings of the terminal must be restored. Exits 1 with the reason if not.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

TAKE, GIVE, HOME = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[H"
SECONDS_MAX = 60
QUIET_SECONDS = 0.2  # the program draws a screen each second


class Screen:
    """A terminal with the program."""

    def __init__(self, command, is_job=False):
        self.leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(follower)
        self.follower = follower
        self.text = b""
        os.set_blocking(self.leader, False)
        if is_job:
            fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
        self.child = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower,
                                      preexec_fn=os.setpgrp if is_job else None)  # fmt: skip
        if is_job:
            self.put_in_front(self.child.pid)

    def wait(self, condition):
        end = time.monotonic() + SECONDS_MAX
        while not condition():
            if time.monotonic() > end:
                sys.exit("not within %d s; the screen: %r" % (SECONDS_MAX, self.text[-2000:]))
            try:
                self.text += os.read(self.leader, 65536)
            except (BlockingIOError, OSError):
                pass
            time.sleep(0.02)

    def put_in_front(self, group):
        os.tcsetpgrp(self.follower, group)

    def take(self, seconds):
        """Returns the output of the next @seconds."""
        begin, end = len(self.text), time.monotonic() + seconds
        self.wait(lambda: time.monotonic() > end)
        return self.text[begin:]

    def finish_screen(self):
        """Waits until the program has just drawn a screen completely."""
        n = self.text.count(HOME)
        self.wait(lambda: self.text.count(HOME) > n)
        self.wait(lambda: not self.take(QUIET_SECONDS))

    def cpu_seconds(self):
        with open("/proc/%d/task/%d/stat" % (self.child.pid, self.child.pid), encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def shows(self, text):
        return text in self.text.rpartition(HOME)[2]

    def is_stopped(self):
        with open("/proc/%d/stat" % self.child.pid, encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "T"

    def check_end(self, name, code, said=b""):
        self.wait(lambda: self.child.poll() is not None)
        self.wait(lambda: GIVE in self.text.rpartition(TAKE)[2])
        if self.child.returncode != code or termios.tcgetattr(self.follower) != self.before:
            sys.exit("%s: exit code %s, or other settings; %r" % (name, self.child.returncode, self.text[-500:]))
        if not re.fullmatch(said, self.text.rpartition(GIVE)[2].strip()):
            sys.exit("%s: words afterwards: %r" % (name, self.text.rpartition(GIVE)[2]))


def test_background(command):
    """Acts like a shell: Ctrl-Z, bg, a line for the shell, fg, kill -STOP, bg, kill %1."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.setsid()
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    screen = Screen(command, is_job=True)
    screen.wait(lambda: screen.shows(b"work"))
    for number in (signal.SIGTSTP, signal.SIGSTOP):
        if number == signal.SIGSTOP:
            screen.finish_screen()  # a program that is stopped while it draws would write the rest later
        screen.child.send_signal(number)
        screen.wait(screen.is_stopped)
        screen.take(0.1)
        screen.put_in_front(os.getpgrp())
        termios.tcsetattr(screen.follower, termios.TCSANOW, screen.before)
        screen.child.send_signal(signal.SIGCONT)
        os.write(screen.leader, b"q\n")
        cpu = screen.cpu_seconds()
        text = screen.take(3).replace(b"q\r\n", b"")
        if text or termios.tcgetattr(screen.follower) != screen.before:
            sys.exit("in the background, after %s: it took the terminal: %r" % (number.name, text[-500:]))
        if screen.cpu_seconds() - cpu > 1.5:
            sys.exit("in the background: %.1f s of 3 busy" % (screen.cpu_seconds() - cpu))
        if not select.select([screen.follower], [], [], 0)[0] or os.read(screen.follower, 100) != b"q\n":
            sys.exit("in the background: it took what was for the shell")
        n = screen.text.count(TAKE)
        screen.put_in_front(screen.child.pid)
        screen.wait(lambda: screen.text.count(TAKE) > n and screen.shows(b"work"))
    screen.put_in_front(os.getpgrp())
    screen.child.send_signal(signal.SIGTERM)
    screen.wait(lambda: screen.child.poll() is not None)
    if screen.child.returncode != 0:
        sys.exit("ended in the background: exit code %s" % screen.child.returncode)
    sys.exit(0)


def test_keys(screen):
    def press(keys, *texts, lacks=()):
        os.write(screen.leader, keys)
        screen.wait(lambda: all(screen.shows(text) for text in texts) and not any(map(screen.shows, lacks)))

    press(b"?", b"keep the screen as it is", lacks=[b" work"])
    press(b"?", b" work", lacks=[b"keep the screen as it is"])
    press(b"h", b"keep the screen as it is", lacks=[b" work"])
    press(b"h", b" work", lacks=[b"keep the screen as it is"])
    press(b"/FUNCTION_3", b", with 'function_3_'", b" function_3", lacks=[b" work"])
    press(b"x\x7f\r", b", with 'function_3';", b" function_3")
    press(b"/zz\r", b"no row has this text")
    press(b"/\x1b", b" work", lacks=[b", with '"])
    press(b"a", b"sorted by total, all samples;")
    press(b" ", b"PAUSED, space goes on")
    n = screen.text.count(HOME)
    screen.take(2.5)
    if screen.text.count(HOME) != n:
        sys.exit("it draws though it is paused")
    press(b"r", b"no samples: no vCPU runs, or none was sampled yet")
    press(b" ", b"? for keys", b" work")
    press(b"a", b"the last ten seconds", b" work")
    press(b"p", b"(processes unknown): ", b"no processes are known: ", b"s shows functions", lacks=[b" work"])
    press(b"v", b"vCPUs sorted by total", b"vcpu0", lacks=[b" work"])
    press(b"t", b"functions sorted by total", b" work", lacks=[b"vcpu0"])
    press(b"w", b"wrote ")
    # Later samples still have their vCPU.
    press(b"rv", b"vCPUs sorted by total", b"vcpu0", lacks=[b"[unknown]"])
    press(b"t", b" work")


def main():
    command = sys.argv[1:]
    screen = Screen(command)
    screen.wait(lambda: screen.shows(b"work"))
    os.write(screen.leader, b"t")
    screen.wait(lambda: screen.shows(b"sorted by total, the last ten seconds; ? for keys"))
    test_keys(screen)
    screen.child.send_signal(signal.SIGTSTP)
    screen.wait(screen.is_stopped)
    screen.wait(lambda: screen.text.endswith(GIVE))
    if termios.tcgetattr(screen.follower) != screen.before:
        sys.exit("stopped: other settings")
    screen.child.send_signal(signal.SIGCONT)
    screen.wait(lambda: screen.text.count(TAKE) == 2 and screen.shows(b"work"))
    os.write(screen.leader, b"q")
    screen.check_end("q", 0, rb"wrote [^ ]*\.svg")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        screen = Screen(command)
        screen.wait(lambda: screen.shows(b"work"))
        screen.child.send_signal(number)
        screen.check_end(number.name, 0)
    sys.exit(test_background(command))


main()
