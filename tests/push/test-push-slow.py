#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-push-slow.py PROGRAM [TEST...] - engines that do not answer, and rounds that fail again and again

Each test waits for limits of time of `push`. The tests run at the same time. Prints TAP.
"""

import os
import sys
import time

import receiver as engine
from pushing import DONE, FAILED, counts_of, run_tests
from receiver import always, of_domain, status
from storing import uuid_of

RUNS_MAX = 10  # in which a profile may fail
PATIENCE_S = 900


def test_no_answer(world):
    """An engine that takes the request and is silent. Nothing is lost."""
    receiver = world.receive_configured(plan=always(engine.hang()))
    world.put()
    counts = world.push_counting(code=FAILED, say="grafana", seconds=PATIENCE_S)
    assert counts == {"left": 1} and len(receiver.requests) >= 2, (counts, len(receiver.requests))
    receiver.plan = None
    assert world.push_counting() == {"sent": 1}
    world.check_sent(receiver)


def test_slow_answer(world):
    """An answer of which a byte arrives now and then, for ever."""
    for code in (200, 400):
        receiver = world.receive_configured(plan=always(engine.drip(code)))
        world.put(at=int(time.time()) - code)
        _, err = world.push(code=FAILED, say="grafana", seconds=PATIENCE_S)
        counts = counts_of(err)
        assert counts == {"left": 1} or (code == 400 and counts == {"refused": 1}), (code, counts)
        if "left" in counts:
            receiver.plan = None
            assert world.push_counting() == {"sent": 1}


def test_long_retry_after(world):
    """`push` waits at most 30 s, whatever the engine asks for, and only a few times."""
    receiver = world.receive_configured(plan=lambda request: engine.retry_after(429, "86400") if request.tries == 0 else None)
    world.put()
    started = time.monotonic()
    out, err = world.push(code=(DONE, FAILED), seconds=PATIENCE_S)
    took = time.monotonic() - started
    assert took < 60, took
    if counts_of(err) == {"left": 1}:
        world.push()
    elif counts_of(err) == {"sent": 1}:
        assert took > 29, (took, out, err)
    world.check_sent(receiver)


def test_ten_runs(world):
    """A profile that fails in ten runs is refused. The others are sent."""
    receiver = world.receive_configured(plan=of_domain(uuid_of(1), status(503, "too busy for you")))
    now = int(time.time())
    bad, good = world.put("web-1", 1), [world.put("web-2", 2, now - 300)]
    for run in range(1, RUNS_MAX):
        assert world.push_counting(code=FAILED) == {"sent": 1, "left": 1}, run
        good.append(world.put("web-2", 2, now - 300 + run))
    # a run in which nothing else is sent does not count
    receiver.plan = always(status(503, "too busy for all"))
    assert world.push_counting(code=FAILED) == {"left": 2}
    receiver.plan = of_domain(uuid_of(1), status(503, "too busy for you"))
    assert world.push_counting(code=FAILED, say="too busy for you|503") == {"sent": 1, "refused": 1}
    assert world.has_noted(bad, word="refused"), world.log()
    n_requests = len(receiver.requests)
    assert world.push_counting() == {}
    assert len(receiver.requests) == n_requests
    world.check_sent(receiver, good)


def main():
    program = os.path.abspath(sys.argv[1])
    return run_tests(program, dict(sorted(globals().items())), sys.argv[2:], jobs=8)


if __name__ == "__main__":
    sys.exit(main())
