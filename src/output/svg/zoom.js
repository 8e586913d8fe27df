// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Zooms to a frame, picks one, and describes one.

const pathTo = (node) => {
    const path = [];
    for (let at = node; at !== view.top; at = view.parent(at)) path.unshift(at);
    return path;
};

const drawCrumbs = () => {
    const path = pathTo(focus);
    const items = [view.top, ...path].map((node, i, list) => {
        const last = i === list.length - 1;
        const item = button(names[view.name(node)], last ? 'shown at full width' : 'zoom out to here', () => zoom(node));
        if (last) item.setAttribute('aria-current', 'true');
        return item;
    });
    crumbs.replaceChildren(...items);
    if (path.length) {
        crumbs.append(button('\u00d7 reset', 'show everything (Home)', () => zoom(view.top)));
        crumbs.scrollTop = crumbs.scrollHeight;
    }
};

// Describes a frame below the graph. Without a frame, the text says what one can do.
const describe = (node) => {
    if (node < 0) {
        about.replaceChildren(html('span', 'hint', 'Click a frame to zoom, or tap it twice.  / search   Enter next match   ' +
            'arrows move   Esc back   c copy stack   ? all keys'));
        return;
    }
    const total = view.total(node), whole = view.total(view.top);
    const facts = [amount(total) + ' samples', percent(total, whole) + ' of all'];
    if (focus !== view.top) facts.push(percent(total, view.total(focus)) + ' of what is shown');
    facts.push('self ' + percent(view.self(node), whole));
    if (compares) {
        const change = changeOf(node);
        facts.push('old ' + percent(view.total(node, OLD), view.total(view.top, OLD)) +
            ', new ' + percent(view.total(node, NEW), view.total(view.top, NEW)),
            (change.ppm > 0 ? '+' : '') + (change.ppm / 10000).toFixed(1) + ' points' +
            (change.word ? ', ' + change.word : change.real ? '' : ', within chance'));
    }
    about.replaceChildren(html('b', '', names[view.name(node)]), html('span', '', facts.join('  \u00b7  ')));
};

const nodeAt = (event) => {
    const place = graph.getBoundingClientRect();
    const x = event.clientX - place.left, line = Math.floor((event.clientY - place.top) / ROW);
    const row = drawn.get(state.icicle ? line + lowest : deepest - line) || [];
    let low = 0, high = row.length - 1;
    while (low <= high) {
        const middle = low + high >> 1;
        if (row[middle].x > x) high = middle - 1;
        else if (row[middle].x + Math.max(row[middle].w, 1) < x) low = middle + 1;
        else return row[middle].node;
    }
    return -1;
};

const zoom = (node) => {
    focus = node;
    picked = node === view.top ? -1 : node;
    state.path = pathTo(node).map((at) => names[view.name(at)]);
    draw();
    show(node);
    describe(picked);
    save(true);
};

const show = (node) => {
    const y = topOf(view.depth(node));
    if (node === view.top) scroll.scrollTop = state.icicle ? 0 : scroll.scrollHeight;
    else if (y < scroll.scrollTop || y + ROW > scroll.scrollTop + scroll.clientHeight)
        scroll.scrollTop = y - scroll.clientHeight / 2;
};

const pick = (node) => {
    picked = node;
    if (!mark(pickMark, node) && node >= 0) zoom(node);
    else if (node >= 0) show(node);
    describe(node);
};
