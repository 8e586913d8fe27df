// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The table of functions: self and total weights, as the table on the terminal.
const ROWS_MAX = 100;
const SORTS = {
    self: (a, b) => b.self - a.self || b.total - a.total,
    total: (a, b) => b.total - a.total || b.self - a.self,
    change: (a, b) => Math.abs(b.change.ppm) - Math.abs(a.change.ppm),
    function: (a, b) => names[a.name] < names[b.name] ? -1 : 1,
};
const COLUMNS = Object.keys(SORTS).filter((column) => compares || column !== 'change');

// The weights of all functions in `table`, and the order of the rows. A new table of frames has no
// weights yet.
let sums = null, sortBy = 'self', isReversed = false;
let drawnFor = []; // what the page shows already

// Adds up the weights of each function in the shown frames. A function counts once in each stack.
const countFunctions = (side) => {
    const { count, nameOf, depthOf, rest, hidden, total } = table;
    const sums = { self: new Float64Array(names.length), total: new Float64Array(names.length) };
    const open = new Uint32Array(names.length), path = [];
    for (let i = 1; i < count; i++) {
        const name = nameOf[i];
        while (path.length >= depthOf[i]) open[path.pop()]--;
        sums.self[name] += rest[side][i] - hidden[side][i];
        if (!open[name]++) sums.total[name] += total[side][i];
        path.push(name);
    }
    sums.self[HIDDEN] = sums.total[HIDDEN] = hidden[side].reduce((sum, weight) => sum + weight, 0);
    return sums;
};

const isFiltered = () => state.span || state.hides.length || state.drops.length || (!state.idle && !uncountedIdles);

// The weights of the complete profile, which include frames that are not in the file
const readFunctions = () => {
    const { next, hasMore } = makeReader(part('functions').textContent);
    const read = sides.map(() => ({ self: new Float64Array(names.length), total: new Float64Array(names.length) }));
    for (let name = 0; hasMore(); name++)
        for (const { self, total } of read) {
            self[name] = next();
            total[name] = next();
        }
    for (const side of sides) {
        const { self, total } = read[side], kept = self.reduce((sum, weight) => sum + weight, 0);
        if (uncountedIdles && state.idle) self[IDLE] = total[IDLE] = uncountedIdles;
        self[HIDDEN] = total[HIDDEN] = recorded.total[side][0] - (uncountedIdles || 0) - recorded.rest[side][0] + recorded.hidden[side][0] - kept;
    }
    return read;
};

// In a search, the table has the functions that match.
const listNames = () => {
    const listed = [];
    for (let name = 0; name < names.length; name++)
        if ((!hits || hits[name]) && sums.some(({ total }) => total[name] > 0)) listed.push(name);
    return listed;
};

const makeRow = (name) => {
    const { self, total } = sums[state.old ? OLD : NEW];
    return { name, self: self[name], total: total[name],
             change: compares ? changeFrom(sums[OLD].total[name], sums[NEW].total[name]) : null };
};

// Leaves out functions that cannot be among the first ROWS_MAX: sorting all takes ten times as long.
const dropLast = (listed) => {
    const { self, total } = sums[state.old ? OLD : NEW], whole = frames.total(0) + 1;
    const [first, second] = { self: [self, total], total: [total, self] }[sortBy] || [];
    if (isReversed || listed.length <= ROWS_MAX || !first) return listed;
    const keys = Float64Array.from(listed, (name) => first[name] + second[name] / whole);
    const least = keys.slice().sort()[listed.length - ROWS_MAX];
    return listed.filter((name, i) => keys[i] >= least);
};

const sortRows = (column) => {
    isReversed = column === sortBy && !isReversed;
    sortBy = column;
    drawFunctions();
    functions.querySelector('[aria-sort] button').focus();
};

const headOf = (column) => {
    const isSorted = column === sortBy;
    const cell = html('th', '', button(column + (isSorted ? (isReversed ? ' \u25b4' : ' \u25be') : ''),
                                       'sort by ' + column, () => sortRows(column)));
    if (isSorted) cell.setAttribute('aria-sort', (column === 'function') === isReversed ? 'descending' : 'ascending');
    return cell;
};

const rowOfFunction = (row) => {
    const whole = frames.total(0);
    const name = button(names[row.name], names[row.name] + ': all callers and callees', () => showOnly(row.name));
    if (state.only === names[row.name]) name.setAttribute('aria-current', 'true');
    const change = compares ? [html('td', row.change.style, pointsOf(row.change))] : [];
    return html('tr', '', html('td', '', percent(row.self, whole)), html('td', '', percent(row.total, whole)),
                ...change, html('td', 'name', name));
};

const drawFunctions = () => {
    const wanted = [table, hits, sortBy, isReversed, state.only, state.old];
    if (!state.table || wanted.every((value, i) => value === drawnFor[i])) return;
    drawnFor = wanted;
    sums = sums || (isFiltered() ? sides.map(countFunctions) : readFunctions());
    const listed = listNames(), more = listed.length - ROWS_MAX;
    const shown = dropLast(listed).map(makeRow).sort(SORTS[sortBy]);
    if (isReversed) shown.reverse();
    functions.replaceChildren(
        html('table', '', html('thead', '', html('tr', '', ...COLUMNS.map(headOf))),
             html('tbody', '', ...shown.slice(0, ROWS_MAX).map(rowOfFunction))),
        html('p', '', more > 0 ? amount(more) + ' more: search to find them' : ''));
};
