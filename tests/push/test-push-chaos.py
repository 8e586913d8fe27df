#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-push-chaos.py PROGRAM [ROUNDS] - no profile is lost, whatever fails, and whenever `push` is killed

The store has ROUNDS (200) rounds of 20 domains. The receiver fails 4 of 10 requests in eight ways,
while `push` and its processes are killed 50 times at random moments. `push` waits half a second and
more after a failure, so a store of 4000 profiles would take half an hour at this rate of failures.
Therefore the receiver is well again some requests after the last kill, and gets the rest.
$UPROF_PUSH_STORM=all makes it fail until the end; 10 ROUNDS then take two minutes. $SEED repeats
a run. Prints TAP.
"""

import os
import random
import signal
import sys
import time

import receiver as engine
from pushing import DONE, FAILED, become_subreaper, check_bodies, counts_of, reap_orphans, run_tests
from receiver import status

DOMAINS, ROUNDS, KILLS = 20, 200, 50
FAILURES = 0.4
REQUESTS_AFTER = 40  # that may fail after the last kill
RUNS_MAX = 60  # until everything is sent


class Storm:
    """A plan by which requests fail at random."""

    def __init__(self, rng):
        self.rng = rng
        self.n_left = None  # requests that may fail yet; None: no end
        self.ways = (
            lambda: status(503), lambda: engine.retry_after(429, 0), lambda: status(408), engine.reset, engine.close_in_body,
            lambda: engine.hang(rng.uniform(0.1, 1)), lambda: engine.taking(engine.reset()),
            lambda: engine.taking(engine.page(200)),
        )  # fmt: skip

    def __call__(self, request):
        if self.n_left is not None:
            self.n_left -= 1
            if self.n_left < 0:
                return None
        return self.rng.choice(self.ways)() if self.rng.random() < FAILURES else None


def pick_moment(rng):
    """Returns after how many seconds a run is killed: half of them while it starts."""
    return rng.uniform(0, 0.3) if rng.random() < 0.5 else rng.uniform(0.3, 2.5)


def kill_runs(world, rng):
    """Returns how many runs were started until KILLS of them were killed."""
    n_killed = n_runs = 0
    while n_killed < KILLS:
        n_runs += 1
        assert n_runs < 20 * KILLS, f"only {n_killed} of {n_runs} runs were killed"
        running = world.begin()
        try:
            running.wait(pick_moment(rng))
            assert running.returncode in (DONE, FAILED), (running.returncode, running.stderr.read())
        except Exception as error:
            if type(error).__name__ != "TimeoutExpired":
                raise
            os.killpg(running.pid, signal.SIGKILL)
            n_killed += 1
        running.communicate()
        left = reap_orphans()
        assert not left, f"processes of a killed run do not end: {left}"
    return n_runs


def finish(world):
    """Pushes until there is nothing to send. Returns how many runs this took."""
    for n_runs in range(1, RUNS_MAX):
        _, err = world.push(code=(DONE, FAILED))
        counts = counts_of(err)
        assert "refused" not in counts and "too_old" not in counts, err
        if not counts:
            return n_runs
    raise AssertionError(f"after {RUNS_MAX} runs there is still something to send: {err}")


def test_chaos(world):
    seed = int(os.environ.get("SEED", time.time_ns()))
    n_rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    rng = random.Random(seed)
    try:
        storm = Storm(random.Random(seed + 1))
        receiver = world.receive_configured(plan=storm)
        world.put_many(DOMAINS, n_rounds)
        n_runs = kill_runs(world, rng)
        n_stormy = len(receiver.requests)
        if os.environ.get("UPROF_PUSH_STORM") != "all":
            storm.n_left = REQUESTS_AFTER
        n_last = finish(world)
        world.check_sent(receiver, may_repeat=True)
        check_bodies(receiver)
        notes = world.notes()
        missing = [one.stem for one in world.rounds if not notes.get(one.stem, "").startswith("sent")]
        assert not missing, ("not in the file of the destination", missing[:5])
        print(f"# {KILLS} of {n_runs} runs were killed, {n_stormy} requests meanwhile, {n_last} runs to the end; "
              f"{len(world.rounds)} profiles, {len(receiver.accepted) - len(world.rounds)} repeated")  # fmt: skip
    except BaseException:
        print(f"# seed {seed}")
        raise


def main():
    become_subreaper()
    return run_tests(os.path.abspath(sys.argv[1]), {"test_chaos": test_chaos})


if __name__ == "__main__":
    sys.exit(main())
