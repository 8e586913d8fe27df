#!/usr/bin/node --perf-basic-prof
// SPDX-License-Identifier: LGPL-2.1-or-later
// node.js - functions that do known work, for ever

function fibonacci(n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

function makeObjects(n)
{
    return Array.from({ length: n }, (_, i) => ({ id: i, name: 'item-' + i }));
}

function serialize(objects)
{
    return JSON.parse(JSON.stringify(objects)).length;
}

function work()
{
    fibonacci(18);
    serialize(makeObjects(200));
    setImmediate(work);
}

work();
