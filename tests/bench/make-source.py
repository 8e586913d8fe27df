#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""make-source.py - prints a large C file that keeps a compiler busy"""

for i in range(3000):
    print(
        f"int f{i}(int *a, int n) {{ int s = {i};"
        f" for (int i = 0; i < n; i++) s += a[i] * (s >> {i % 7}) + (s % {i + 3});"
        f" return s > 9 ? s : f{max(i - 1, 0)}(a, s); }}"
    )
