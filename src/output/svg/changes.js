// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The changes of a comparison, and the frames that only the old profile has.

// as in change.c
const LIMITS = [5000, 10000, 20000, 40000, 80000, 160000];
const changeFrom = (a, b) => {
    const allA = frames.total(0, OLD), allB = frames.total(0, NEW);
    const shareA = allA > 0 ? a / allA : 0, shareB = allB > 0 ? b / allB : 0;
    const rate = (a + b) / (allA + allB);
    const sigma = Math.sqrt(rate * (1 - rate) * (1 / allA + 1 / allB));
    const real = allA > 0 && allB > 0 && a + b >= 30 && Math.abs(shareB - shareA) > 3 * sigma;
    const ppm = Math.trunc(shareB * 1e6) - Math.trunc(shareA * 1e6);
    const step = 1 + LIMITS.filter((limit) => Math.abs(ppm) >= limit).length;
    return { ppm, real, word: a === 0 ? 'new' : b === 0 ? 'gone' : '',
             style: real ? (ppm > 0 ? 'r' : 'b') + step : 'g0' };
};
const changeOf = (node) => changeFrom(view.total(node, OLD), view.total(node, NEW));
const pointsOf = ({ ppm }) => (ppm > 0 ? '+' : '') + (ppm / 10000).toFixed(1);

const labelOf = (node) => names[view.name(node)] +
    (compares && view.total(node, OLD) === 0 && view.total(view.parent(node), OLD) > 0 ? ' (new)' : '');

// Lists frames that only the old profile has: the new layout lacks them. Each entry opens the
// old layout.
const listGone = () => {
    const found = [];
    for (let i = 1; i < table.count;) {
        const isGone = frames.total(i, NEW) === 0 && frames.total(i, OLD) > 0;
        if (isGone) found.push(i);
        i = isGone ? table.endOf[i] : i + 1;
    }
    const share = (i) => percent(frames.total(i, OLD), frames.total(0, OLD));
    const real = found.filter((i) => changeOf(i).real)
        .sort((a, b) => frames.total(b, OLD) - frames.total(a, OLD)).slice(0, 8);
    gone.style.display = real.length ? '' : 'none';
    gone.replaceChildren('gone:', ...real.map((i) => button(names[table.nameOf[i]] + '  ' + share(i),
        'show it in the old layout', () => {
            state.old = true;
            state.invert = false;
            state.only = '';
            rebuild();
            zoom(i);
        })));
};
