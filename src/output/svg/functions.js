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

// The rows of `table`, and their order. A new table of frames has no rows yet.
let rows = null, sortBy = 'self', isReversed = false;
let drawnFor = []; // what the page shows already

// Adds up the weights of each function. A function counts once in each stack.
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
    return sums;
};

const makeRows = () => {
    const sums = sides.map(countFunctions), shown = sums[state.old ? OLD : NEW], made = [];
    for (let name = 0; name < names.length; name++) {
        if (!sides.some((side) => sums[side].total[name] > 0)) continue;
        made.push({ name, self: shown.self[name], total: shown.total[name],
                    change: compares ? changeFrom(sums[OLD].total[name], sums[NEW].total[name]) : null });
    }
    return made;
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

// In a search, the table has the functions that match.
const drawFunctions = () => {
    const wanted = [table, hits, sortBy, isReversed, state.only];
    if (!state.table || wanted.every((value, i) => value === drawnFor[i])) return;
    drawnFor = wanted;
    rows = rows || makeRows();
    const shown = rows.filter((row) => !hits || hits[row.name]).sort(SORTS[sortBy]);
    if (isReversed) shown.reverse();
    const more = shown.length - ROWS_MAX;
    functions.replaceChildren(
        html('table', '', html('thead', '', html('tr', '', ...COLUMNS.map(headOf))),
             html('tbody', '', ...shown.slice(0, ROWS_MAX).map(rowOfFunction))),
        html('p', '', more > 0 ? amount(more) + ' more: search to find them' : ''));
};
