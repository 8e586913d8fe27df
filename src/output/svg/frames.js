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

// Reads the rows of the table in the file into `columns`: the n-th number of each row goes into the
// n-th column. Character codes stand here for split() and parseInt(), which take ten times as long.
const SPACE = 32, LINE_END = 10, NINE = 57, LETTERS = 87; // 'a' is 97, and means 10
const readColumns = (text, columns) => {
    let value = 0, n = 0, row = 0;
    for (let at = 0, end = text.length; at < end; at++) {
        const code = text.charCodeAt(at);
        if (code > SPACE) {
            value = value * 36 + code - (code > NINE ? LETTERS : 48);
            continue;
        }
        columns[n][row] = value;
        value = 0;
        n = code === LINE_END ? 0 : n + 1;
        if (code === LINE_END) row++;
    }
};

const readTable = () => {
    const sent = +part('graph').getAttribute('sent'), table = makeTable(sent + (uncountedIdles > 0 ? 1 : 0));
    const { nameOf, parentOf, depthOf, rest, hidden } = table, ups = new Uint32Array(sent);
    const weights = sides.flatMap((side) => [rest[side], hidden[side]]);
    readColumns(part('frames').textContent, [nameOf, ups, ...weights]);
    for (let i = 1; i < sent; i++) {
        let parent = i - 1;
        for (let up = ups[i]; up > 0; up--) parent = parentOf[parent];
        parentOf[i] = parent;
        depthOf[i] = depthOf[parent] + 1;
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
