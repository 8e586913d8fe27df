// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The heat map: the share of running samples by time. A span of it can be selected; the graph
// then has only the samples of that span. In a history, columns are days, and cells are their hours.
const days = linesOf('days'), hasDays = days.length > 0, hottest = linesOf('hottest');
const CELL_HEIGHT = hasDays ? 8 : 4, COLUMN_MAX = hasDays ? 48 : 24, LEVELS = 9;
const AXIS = hasDays ? 36 : 0, AXIS_HEIGHT = hasDays ? 14 : 0, DAY_LABEL = 70;

const [timeHead, timeCells] = linesOf('time'), lists = linesOf('stacks');
const readHead = () => {
    const { next } = makeReader(timeHead || 'AAAA');
    return [next(), next(), next(), next()];
};
const [cellMs, cellsPerColumn, cellsPerList, untimed] = readHead();
const readCells = () => {
    const { next, hasMore } = makeReader(timeCells || ''), cells = [];
    while (hasMore()) {
        const running = next();
        cells.push({ running: Math.floor(running / 2), idle: running % 2 ? next() : 0 });
    }
    return cells;
};
// What else is known of an hour
const readSlots = () => {
    const { next } = makeReader(hasDays ? part('slots').textContent : '');
    return days.flatMap(() => Array.from({ length: cellsPerColumn }, () =>
        ({ hottest: hottest[next() - 1], self: next(), failed: next(), isJoined: next() > 0 })));
};
const slots = readSlots();
const cells = readCells(), columns = cells.length / (cellsPerColumn || 1);
const hasTime = cells.length > 0;

const heatPaths = svg('g', {}), spanMark = svg('path', { class: 'span' }), axis = svg('g', {});
const heat = svg('svg', { class: 'heat', tabindex: 0, role: 'application',
                          'aria-label': 'heat map of time: arrows select a column or a cell, Shift extends' });
const heatMap = svg('g', { transform: 'translate(' + AXIS + ' 0)' });
heatMap.append(heatPaths, spanMark);
heat.append(heatMap, axis);
const timeText = html('output', 'hint');
const clearSpan = button('\u00d7 all times', 'show all times (Esc)', () => setSpan(null));
if (hasTime) {
    const title = still.querySelector('#time').previousElementSibling.textContent;
    if (!hasDays) timeBox.title = title;
    timeBox.append(heat, html('div', '', timeText, clearSpan));
}

let columnWidth = COLUMN_MAX;

const levelOf = ({ running, idle }) =>
    running + idle > 0 ? 1 + Math.floor(running * (LEVELS - 1) / (running + idle)) : 0;

// The cells from `begin` to `end` of one or several columns, as one rectangle
const cellShape = (column, begin, end, columns = 1) => 'M' + (column * columnWidth).toFixed(1) + ' ' +
    (cellsPerColumn - end) * CELL_HEIGHT + 'h' + (columns * columnWidth).toFixed(1) + 'v' + (end - begin) * CELL_HEIGHT +
    'h-' + (columns * columnWidth).toFixed(1) + 'z';

// The rest of the first column, the columns between, and the begin of the last column
const spanShape = ([a, b]) => {
    const first = Math.floor(a / cellsPerColumn), last = Math.floor(b / cellsPerColumn);
    const begin = a % cellsPerColumn, end = b % cellsPerColumn + 1;
    if (first === last) return cellShape(first, begin, end);
    return cellShape(first, begin, cellsPerColumn) + cellShape(last, 0, end) +
        (last - first > 1 ? cellShape(first + 1, 0, cellsPerColumn, last - first - 1) : '');
};

// Equal cells that stand above each other are one rectangle.
const drawColumn = (column, shapes) => {
    for (let row = 0, end; row < cellsPerColumn; row = end) {
        const level = levelOf(cells[column * cellsPerColumn + row]);
        for (end = row + 1; end < cellsPerColumn && levelOf(cells[column * cellsPerColumn + end]) === level;) end++;
        shapes[level].push(cellShape(column, row, end));
    }
};

const failedShape = () => slots.map(({ failed }, cell) => failed ? 'M' +
    (Math.floor(cell / cellsPerColumn) * columnWidth + 2).toFixed(1) + ' ' +
    ((cellsPerColumn - 1 - cell % cellsPerColumn) * CELL_HEIGHT + 2) + 'h4v4h-4z' : '').join('');

// Days below the map, as many as fit, and hours beside the map
const drawAxis = () => {
    const label = (x, y, text) => {
        const element = svg('text', { class: 'n', x, y });
        element.textContent = text;
        return element;
    };
    const step = Math.ceil(DAY_LABEL / columnWidth), height = cellsPerColumn * CELL_HEIGHT;
    axis.replaceChildren(...[0, 6, 12, 18].map((hour) => label(0, height - hour * CELL_HEIGHT, hourText(hour))),
        ...days.map((day, i) => i % step ? '' : label((AXIS + i * columnWidth).toFixed(1), height + 11, day)).filter(Boolean));
};

const drawHeat = (width) => {
    if (!hasTime) return;
    const shapes = Array.from({ length: LEVELS + 1 }, () => []);
    columnWidth = Math.min(COLUMN_MAX, Math.max(width - AXIS - (hasDays ? DAY_LABEL : 0), 1) / columns);
    for (let column = 0; column < columns; column++) drawColumn(column, shapes);
    heatPaths.replaceChildren(...shapes.slice(1).map((shape, i) => svg('path', { class: 'e' + (i + 1), d: shape.join('') })));
    if (hasDays) heatPaths.append(svg('path', { class: 'failed', d: failedShape() }));
    if (hasDays) drawAxis();
    heat.setAttribute('width', AXIS + Math.max(columnWidth * columns, 1) + (hasDays ? DAY_LABEL : 0));
    heat.setAttribute('height', cellsPerColumn * CELL_HEIGHT + AXIS_HEIGHT);
    drawSpan(spanOf(state.span));
};

const seconds = (cell) => +(cell * cellMs / 1000).toFixed(3);
const hourText = (hour) => String(hour).padStart(2, '0') + ':00';
const dayOf = (cell) => days[Math.floor(cell / cellsPerColumn)];
// The times of the cells from `a` to `b`
const spanText = (a, b) => {
    if (!hasDays) return seconds(a) + ' s to ' + seconds(b + 1) + ' s';
    const end = hourText(b % cellsPerColumn + 1);
    return dayOf(a) + ' ' + hourText(a % cellsPerColumn) + ' to ' + (dayOf(a) === dayOf(b) ? end : dayOf(b) + ' ' + end);
};

// A span is [first cell, last cell]. It covers complete lists of stacks, and complete sums.
const widen = ([a, b]) => {
    const end = cells.length - 1, clamp = (cell) => Math.min(Math.max(cell, 0), end);
    let first = clamp(Math.min(a, b)), last = clamp(Math.max(a, b)), size;
    do {
        size = last - first;
        first -= first % cellsPerList;
        last = Math.min(last - last % cellsPerList + cellsPerList - 1, end);
        while (hasDays && slots[first].isJoined) first--;
        while (hasDays && last < end && slots[last + 1].isJoined) last++;
    } while (last - first > size);
    return [first, last];
};

const spanOf = (text) => {
    const found = hasTime && /^(\d{1,12}(?:\.\d{1,3})?)-(\d{1,12}(?:\.\d{1,3})?)$/.exec(text);
    if (!found) return null;
    const [from, to] = [found[1], found[2]].map((value) => Math.round(value * 1000 / cellMs));
    return to > from ? widen([from, to - 1]) : null;
};

const countSpan = ([a, b]) => {
    const sum = { running: 0, idle: 0 };
    for (let i = a; i <= b; i++) {
        sum.running += cells[i].running;
        sum.idle += cells[i].idle;
    }
    return sum;
};

const drawSpan = (span) => {
    const [a, b] = span || [0, cells.length - 1], { running, idle } = countSpan([a, b]);
    spanMark.setAttribute('d', span ? spanShape(span) : '');
    timeText.textContent = spanText(a, b) + ': ' + amount(running + idle) + ' samples, ' +
        percent(running, running + idle) + ' running' + (span ? '' : '; drag in the map to select a time (m)') +
        (untimed ? '; ' + amount(untimed) + ' samples have no time' : '');
    clearSpan.style.display = span ? '' : 'none';
};

const setSpan = (span) => {
    const [a, b] = span ? widen(span) : [0, -1];
    state.span = span ? seconds(a) + '-' + seconds(b + 1) : '';
    rebuild();
    save(true);
};

// ---- the frames of a span ----

// Adds the stacks of a list to the weights: timeline-priv.h has the format.
const addList = (list, rest, hidden) => {
    const { next, hasMore } = makeReader(list);
    let number = 0;
    while (hasMore()) {
        const step = next(), weight = step % 2 ? next() : 1;
        number += Math.floor(step / 2);
        rest[number >> 1] += weight;
        if (number & 1) hidden[number >> 1] += weight;
    }
};

// Returns the recorded frames with the weights of the selected span.
const framesOfSpan = () => {
    const span = spanOf(state.span);
    if (!span) return recorded;
    const rest = new Float64Array(recorded.count), hidden = new Float64Array(recorded.count);
    for (let list = span[0] / cellsPerList; list * cellsPerList <= span[1]; list++) addList(lists[list], rest, hidden);
    if (uncountedIdles) rest[recorded.count - 1] = countSpan(span).idle;
    return { ...recorded, rest: [rest], hidden: [hidden] };
};

// ---- selection ----

const cellAt = (event) => {
    const place = heat.getBoundingClientRect(), clamp = (value, end) => Math.min(Math.max(Math.floor(value), 0), end - 1);
    const column = clamp((event.clientX - place.left - AXIS) / columnWidth, columns);
    const row = clamp((event.clientY - place.top) / CELL_HEIGHT, cellsPerColumn);
    return column * cellsPerColumn + cellsPerColumn - 1 - row;
};
const columnOf = (cell) => {
    const first = cell - cell % cellsPerColumn;
    return [first, first + cellsPerColumn - 1];
};

const showSlot = (cell, event) => {
    const [a, b] = slots[cell].isJoined || (slots[cell + 1] || {}).isJoined ? widen([cell, cell]) : [cell, cell];
    const { running, idle } = countSpan([a, b]), all = running + idle, { hottest, self, failed } = slots[cell];
    const part = percent(self, cells[cell].running);
    showBox(spanText(a, b), [all ? percent(running, all) + ' running  \u00b7  ' + amount(all) + ' samples' : 'no samples',
        hottest && 'hottest: ' + hottest + ' (' + part + ')', failed && amount(failed) + (failed === 1 ? ' round' : ' rounds') + ' failed'],
        event);
};

let dragFrom = -1;
heat.addEventListener('pointerdown', (event) => {
    dragFrom = cellAt(event);
    heat.setPointerCapture(event.pointerId);
});
heat.addEventListener('pointermove', (event) => {
    if (dragFrom >= 0) drawSpan(widen([dragFrom, cellAt(event)]));
    if (hasDays) showSlot(cellAt(event), event);
});
heat.addEventListener('pointerleave', () => { tip.style.display = 'none'; });
heat.addEventListener('pointerup', (event) => {
    const from = dragFrom, to = cellAt(event);
    dragFrom = -1;
    if (from >= 0) setSpan(from === to && !hasDays ? columnOf(to) : [from, to]);
});
heat.addEventListener('pointercancel', () => {
    dragFrom = -1;
    drawSpan(spanOf(state.span));
});

// Left and Right select a column, Up and Down a cell. With Shift, the end of the span moves.
const moveSpan = (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.key === 'Escape' && state.span) setSpan(null);
    else if (!way) return false;
    else {
        const isColumn = event.key === 'ArrowLeft' || event.key === 'ArrowRight', span = spanOf(state.span);
        const step = way * Math.max(isColumn ? cellsPerColumn : 1, cellsPerList);
        if (!span) setSpan(columnOf(0));
        else if (event.shiftKey) setSpan([span[0], Math.max(span[1] + step, span[0])]);
        else setSpan(isColumn ? columnOf(Math.min(Math.max(span[0] + step, 0), cells.length - 1)) : [span[0] + step, span[0] + step]);
    }
    return true;
};
