#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""python.py - functions, methods and generators that do known work, for ever"""

import hashlib
import json
import re


class Shop:
    """Methods that call each other."""

    def __init__(self):
        self.orders = [{"id": i, "name": f"item-{i}", "price": i * 1.5} for i in range(200)]

    def total(self):
        return sum(order["price"] for order in self.orders)

    def serialize(self):
        return json.dumps(self.orders)

    def checksum(self):
        return hashlib.sha256(self.serialize().encode()).hexdigest()


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def count_words(text):
    return len(re.findall(r"[a-z]+-[0-9]+", text))


def squares(limit):
    for i in range(limit):
        yield i * i


def sum_squares(limit):
    return sum(squares(limit))


def main():
    shop = Shop()
    while True:
        shop.total()
        shop.checksum()
        count_words(shop.serialize())
        fibonacci(16)
        sum_squares(3000)
        sorted(range(2000), key=lambda number: -number)


if __name__ == "__main__":
    main()
