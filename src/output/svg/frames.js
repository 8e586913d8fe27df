// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The frames of the profile, from <metadata>.
const SVG = 'http://www.w3.org/2000/svg';
const TABLES = 'https://virt-uprof.org/xmlns/flamegraph/2.0';
const NEW = 0, OLD = 1;

const page = document.documentElement;
// Inside another page, the file stays a static picture.
if (page.namespaceURI !== SVG) return;

const meta = page.querySelector('metadata');
const part = (name) => meta.getElementsByTagNameNS(TABLES, name)[0];
const linesOf = (name) => part(name) ? part(name).textContent.split('\n').slice(0, -1) : [];
const compares = part('graph').getAttribute('type') === 'diff';
const isTime = part('graph').getAttribute('unit') === 'us';
const sides = compares ? [NEW, OLD] : [NEW];

const names = [], kinds = [], hashes = [];
const addName = (kind, hash, name) => {
    kinds.push(kind);
    hashes.push(hash);
    return names.push(name) - 1;
};

// Reads the numbers of a text one after the other: digits-priv.h has their format. Most have one
// digit. Codes stand here for split() and parseInt(), which take ten times as long.
const DIGITS = new Uint8Array(128);
[...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'].forEach((digit, i) => {
    DIGITS[digit.charCodeAt(0)] = i;
});
const makeReader = (text) => {
    let at = 0;
    const readLong = (low) => {
        for (let value = low, unit = 32;; unit *= 32) {
            const digit = DIGITS[text.charCodeAt(at++)];
            value += (digit & 31) * unit;
            if (digit < 32) return value;
        }
    };
    return {
        hasMore: () => at < text.length,
        next: () => {
            const digit = DIGITS[text.charCodeAt(at++)];
            return digit < 32 ? digit : readLong(digit & 31);
        },
    };
};

// A name has the beginning of the previous name.
let lastName = '';
for (const line of linesOf('names')) {
    lastName = lastName.slice(0, DIGITS[line.charCodeAt(3)]) + line.slice(4);
    addName(line[0], parseInt(line.slice(1, 3), 16), lastName);
}
// The module of each name, or ''
const modules = [], moduleLines = ['', ...linesOf('modules')];
if (part('within')) for (const { hasMore, next } = makeReader(part('within').textContent); hasMore();) modules.push(moduleLines[next()]);
const HIDDEN = addName('m', 0, '[too narrow to be kept]');
// Samples of halted vCPUs that are no stacks of the profile: they can be shown as a bar.
const uncountedIdles = +part('graph').getAttribute('idle');
const IDLE = uncountedIdles ? addName('z', 4, '[idle]') : names.indexOf('[idle]');

// A table of frames: callers before callees, and all frames below a frame follow the frame.
// `rest` is the weight of stacks that end in a frame, with `hidden`, the weight of stacks that
// end in frames above it that are not in the file.
const makeTable = (count) => ({
    count,
    nameOf: new Uint32Array(count),
    parentOf: new Uint32Array(count),
    depthOf: new Uint32Array(count),
    endOf: new Uint32Array(count),
    rest: sides.map(() => new Float64Array(count)),
    hidden: sides.map(() => new Float64Array(count)),
    total: sides.map(() => new Float64Array(count)),
});

const findEnds = ({ count, parentOf, endOf }) => {
    for (let i = count - 1; i >= 0; i--) {
        endOf[i] = Math.max(endOf[i], i + 1);
        if (i > 0) endOf[parentOf[i]] = Math.max(endOf[parentOf[i]], endOf[i]);
    }
};

const sumUp = ({ count, parentOf, rest, total }) => {
    for (const side of sides) {
        const sums = total[side];
        sums.set(rest[side]);
        for (let i = count - 1; i > 0; i--) sums[parentOf[i]] += sums[i];
    }
};

// svg-tables-priv.h has the format.
const readTable = () => {
    const sent = +part('graph').getAttribute('sent'), table = makeTable(sent + (uncountedIdles > 0 ? 1 : 0));
    const { nameOf, parentOf, depthOf, rest, hidden } = table, { next } = makeReader(part('frames').textContent);
    const others = compares ? [hidden[NEW], rest[OLD], hidden[OLD]] : [hidden[NEW]];
    for (let i = 0; i < sent; i++) {
        nameOf[i] = next();
        const up = next();
        rest[NEW][i] = next();
        if (up & 1) for (const weights of others) weights[i] = next();
        let parent = i - 1;
        for (let level = up >> 1; level > 0; level--) parent = parentOf[parent];
        if (i > 0) parentOf[i] = parent;
        if (i > 0) depthOf[i] = depthOf[parent] + 1;
    }
    if (uncountedIdles > 0) {
        nameOf[sent] = IDLE;
        depthOf[sent] = 1;
        rest[NEW][sent] = uncountedIdles;
    }
    findEnds(table);
    sumUp(table);
    return table;
};
const recorded = readTable();
