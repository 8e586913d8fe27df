// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Zooms to a frame, or picks one.
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
    if (path.length || state.only || state.hides.length || state.drops.length || state.span) {
        crumbs.append(button('\u00d7 reset', 'show everything (Home)', showAll));
        crumbs.scrollTop = crumbs.scrollHeight;
    }
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
    state.upward = view.depth(node) < 0;
    describe(picked);
    draw();
    show(node);
    save(true);
};

// Shows one function with all its callers and callees.
const showOnly = (name) => {
    state.only = names[name];
    state.path = [];
    rebuild();
    save(true);
};

const showAll = () => {
    state.only = state.span = '';
    state.path = state.hides = state.drops = [];
    rebuild();
    save(true);
};

const show = (node) => {
    const y = topOf(view.depth(node));
    if (node === view.top && !view.callers) scroll.scrollTop = state.icicle ? 0 : scroll.scrollHeight;
    else if (y < scroll.scrollTop || y + ROW > scroll.scrollTop + scroll.clientHeight)
        scroll.scrollTop = y - scroll.clientHeight / 2;
};

const pick = (node) => {
    picked = node;
    if (!mark(pickMark, node) && node >= 0) zoom(node);
    else if (node >= 0) show(node);
    describe(node);
};
