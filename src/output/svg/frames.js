// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The frames of the profile, from <metadata>.
const SVG = 'http://www.w3.org/2000/svg';
const TABLES = 'https://virt-uprof.org/xmlns/flamegraph/1.0';
const NEW = 0, OLD = 1;

const page = document.documentElement;
// Inside another page, the file stays a static picture.
if (page.namespaceURI !== SVG) return;

const meta = page.querySelector('metadata');
const part = (name) => meta.getElementsByTagNameNS(TABLES, name)[0];
const linesOf = (name) => part(name) ? part(name).textContent.split('\n').slice(0, -1) : [];
const compares = part('graph').getAttribute('type') === 'diff';
const sides = compares ? [NEW, OLD] : [NEW];

const names = [], kinds = [], hashes = [];
const addName = (kind, hash, name) => {
    kinds.push(kind);
    hashes.push(hash);
    return names.push(name) - 1;
};
for (const line of linesOf('names')) addName(line[0], parseInt(line.slice(1, 3), 16), line.slice(3));
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

const readTable = () => {
    const rows = linesOf('frames');
    if (uncountedIdles) rows.push([IDLE, 0, uncountedIdles].map((value) => value.toString(36)).join(' '));
    const table = makeTable(rows.length);
    const { nameOf, parentOf, depthOf, rest, hidden } = table;
    rows.forEach((row, i) => {
        const values = row.split(' ').map((value) => parseInt(value, 36));
        let parent = uncountedIdles && i === rows.length - 1 ? 0 : i - 1;
        for (let up = values[1]; up > 0; up--) parent = parentOf[parent];
        nameOf[i] = values[0];
        parentOf[i] = i > 0 ? parent : 0;
        depthOf[i] = i > 0 ? depthOf[parent] + 1 : 0;
        for (const side of sides) {
            rest[side][i] = values[2 + 2 * side] || 0;
            hidden[side][i] = values[3 + 2 * side] || 0;
        }
    });
    findEnds(table);
    sumUp(table);
    return table;
};
const recorded = readTable();
