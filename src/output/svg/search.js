// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Search by a regular expression.

const search = () => {
    let test = null;
    box.classList.remove('bad');
    found.textContent = '';
    if (state.query) {
        try {
            test = new RegExp(state.query, state.exact ? '' : 'i');
        } catch (e) {
            box.classList.add('bad');
            found.textContent = 'not a regular expression';
        }
    }
    hits = test ? names.map((name) => test.test(name)) : null;
    if (!hits) return;
    let covered = 0, n = 0, skip = 0, weight = frames.total(0);
    for (let i = 0; i < table.count; i++) {
        if (!hits[table.nameOf[i]] || frames.total(i) === 0) continue;
        n++;
        if (i >= skip) {
            covered += frames.total(i);
            skip = table.endOf[i];
        }
    }
    found.textContent = amount(n) + (n === 1 ? ' frame, ' : ' frames, ') + percent(covered, weight) + ' of all';
};

// Picks the next match in the order of the table, or, in a view of merged frames, of those that
// are drawn.
const step = (way) => {
    if (!hits) return;
    order = [];
    if (view !== frames) {
        for (const row of drawn.values()) for (const { node } of row) if (hits[view.name(node)]) order.push(node);
    } else {
        for (let i = 0; i < table.count; i++) if (hits[table.nameOf[i]] && view.total(i) > 0) order.push(i);
    }
    if (!order.length) return;
    const at = order.indexOf(picked);
    pick(order[at < 0 ? (way > 0 ? 0 : order.length - 1) : (at + way + order.length) % order.length]);
};
