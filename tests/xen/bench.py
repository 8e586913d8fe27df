#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
bench.py KIND SIDECAR CALL-NS BARE-NS XENCTX-RUNS XENCTX-NS - prints the cost of a hold

SIDECAR is the sidecar of a run at the highest possible rate; Xen reports the length of its holds.
CALL-NS is the time of a hypercall that does nothing. BARE-NS is the time of three hypercalls that
pause, read registers and unpause, without copying a stack, as their caller measures it in a loop.
XENCTX-RUNS runs of xenctx on the same guest took XENCTX-NS. The lab is emulated, so only ratios of
times of one run are meaningful.
"""

import json
import sys

KIND, SIDECAR, CALL_NS, BARE_NS, RUNS, RUNS_NS = sys.argv[1:]
HOLD_US_WANTED = 80

with open(SIDECAR, encoding="utf-8") as file:
    run = json.load(file)
hold = run["hold_us"]
call_us, bare_us = int(CALL_NS) / 1000, int(BARE_NS) / 1000
rate = run["samples"]["total"] * 1000 / run["duration_ms"]
xenctx_us = int(RUNS_NS) / 1000 / int(RUNS)

print(f"{KIND}: hold p50 {hold['p50']} us (wanted: {HOLD_US_WANTED}), p90 {hold['p90']} us, "
      f"p99 {hold['p99']} us, {rate:.0f} samples/s; an empty hypercall takes {call_us:.1f} us, "
      f"three bare calls of Xen {bare_us:.1f} us")
print(f"{KIND}: a hold is {hold['p50'] / call_us:.1f} empty hypercalls, "
      f"{hold['p50'] / bare_us:.2f} of three bare calls, stack included")
print(f"{KIND}: xenctx takes {xenctx_us:.0f} us a look: {xenctx_us / hold['p50']:.0f} holds; "
      f"{rate * xenctx_us / 1e6:.0f} times as many samples a second")
