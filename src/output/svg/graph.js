// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Draws the view to the width of the window.
const ROW = 18, NARROW = 0.5, INSET = 4, LABEL_MIN = 5;

// The shown frames, their view in the recorded order, and the view that is drawn
let table, frames, view;
// The visible frames by depth, and the range of depths. A node has a negative depth if it is a
// caller of the function that is shown.
let drawn = new Map(), deepest = 0, lowest = 0;
let focus = 0, picked = -1, letter = 6.6, dark = false, hits = null, order = [];

const colorOf = (node) => {
    const name = view.name(node);
    if (hits && hits[name]) return 'hit';
    const off = hits ? ' off' : '';
    if (compares) return changeOf(node).style + off;
    if (state.byName && kinds[name] !== 'm' && kinds[name] !== 'z' && kinds[name] !== 'd')
        return 'h' + (hashes[name] >> 3) + off;
    return kinds[name] + hashes[name] % 8 + off;
};

// Lists, row by row, the frames that are wide enough to be visible.
const arrange = (width) => {
    const put = (node, x, w) => {
        const depth = view.depth(node);
        if (!drawn.has(depth)) drawn.set(depth, []);
        drawn.get(depth).push({ node, x, w });
    };
    let unseen = 0;
    drawn = new Map();
    for (let up = focus; up !== view.top;) {
        up = view.parent(up);
        put(up, 0, width);
    }
    const whole = view.total(focus);
    const todo = whole > 0 ? [[focus, 0]] : [];
    const line = (kids, left) => {
        for (const kid of kids) {
            if (view.total(kid) * width / whole >= NARROW) todo.push([kid, left]);
            else unseen++;
            left += view.total(kid);
        }
    };
    if (todo.length && focus === view.top && view.callers) line(view.callers(), 0);
    while (todo.length) {
        const [node, left] = todo.pop();
        put(node, left * width / whole, view.total(node) * width / whole);
        line(view.kids(node), left);
    }
    for (const row of drawn.values()) row.sort((a, b) => a.x - b.x);
    deepest = Math.max(0, ...drawn.keys());
    lowest = Math.min(0, ...drawn.keys());
    return unseen;
};

const topOf = (depth) => (state.icicle ? depth - lowest : deepest - depth) * ROW;
const rowOf = (node) => drawn.get(view.depth(node)) || [];

const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\ud83c-\ud83e][\udc00-\udfff]/;
const fit = (text, width) => {
    const room = Math.floor((width - 2 * INSET) / letter);
    if (room < LABEL_MIN) return '';
    if (text.length <= room / 2) return text;
    let columns = 0, cut = '';
    for (const c of text) {
        columns += wide.test(c) ? 2 : 1;
        if (columns > room) return cut + '..';
        if (columns + 2 <= room) cut += c;
    }
    return text;
};

// Do frames of this depth stand between the focus and the top?
const isAbove = (depth) => Math.abs(depth) < Math.abs(view.depth(focus));

const paint = () => {
    const paths = new Map();
    let used = 0;
    drawn.forEach((row, depth) => {
        const y = topOf(depth);
        for (const { node, x, w } of row) {
            const style = colorOf(node) + (isAbove(depth) ? ' above' : '');
            const side = w > 3 ? w - 0.5 : w;
            const shape = 'M' + x.toFixed(1) + ' ' + y + 'h' + side.toFixed(1) + 'v' + (ROW - 1) + 'h-' + side.toFixed(1) + 'z';
            if (!paths.has(style)) paths.set(style, []);
            paths.get(style).push(shape);
            const text = fit(labelOf(node), w);
            if (!text) continue;
            const label = labels.children[used++] || labels.appendChild(svg('text', {}));
            label.setAttribute('class', 'l ' + style.replace(/^\w+/, (s) => s === 'hit' ? 'on' : ''));
            label.setAttribute('x', (x + INSET).toFixed(1));
            label.setAttribute('y', y + 12.7);
            label.textContent = text;
        }
    });
    while (labels.children.length > used) labels.lastChild.remove();
    shapes.replaceChildren(...[...paths].map(([style, shape]) => {
        const path = svg('path', { class: style, d: shape.join('') });
        const hue = /^h(\d+)\b/.exec(style);
        if (hue) path.setAttribute('style', 'fill:hsl(' + hue[1] * 11.25 + (dark ? ' 38% 36%)' : ' 62% 74%)'));
        return path;
    }));
};

const mark = (rect, node) => {
    const at = node >= 0 && rowOf(node).find((spot) => spot.node === node);
    rect.setAttribute('width', at ? Math.max(at.w - 0.5, 1) : 0);
    if (!at) return null;
    rect.setAttribute('x', at.x);
    rect.setAttribute('y', topOf(view.depth(node)));
    rect.setAttribute('height', ROW - 1);
    return at;
};

const draw = () => {
    functions.style.display = state.table ? '' : 'none';
    // The sizes stand before all changes, so that the browser lays out the page once.
    const width = Math.max(scroll.clientWidth, 100), heatWidth = timeBox.clientWidth;
    const unseen = arrange(width);
    graph.setAttribute('width', width);
    graph.setAttribute('height', (deepest - lowest + 1) * ROW);
    paint();
    mark(hoverMark, -1);
    mark(pickMark, picked);
    tip.style.display = 'none';
    const kept = recorded.count, sent = +part('graph').getAttribute('all');
    narrow.textContent = [unseen ? amount(unseen) + ' callees narrower than half a pixel: zoom to see them' : '',
        sent > kept ? amount(sent - kept) + ' of ' + amount(sent) + ' frames are not in this file' : '']
        .filter(Boolean).join('; ') || (view.total(view.top) > 0 ? 'all frames shown' : 'no samples to show');
    drawCrumbs();
    drawHeat(heatWidth);
    drawFunctions();
    toggles.forEach((show) => show());
};

