// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Saves what is shown: as a picture without scripts, or as folded stacks. The browser gets the
// file from this page; nothing goes over a network.
const download = (text, type, ending) => {
    const link = html('a', '');
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = (page.querySelector('title').textContent.replace(/[^\w.-]+/g, '_').slice(0, 100) || 'picture') + ending;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
};

// What was chosen, for the head of a saved picture
const choiceText = () => [
    state.only && 'all callers and callees of ' + state.only,
    focus !== view.top && 'zoomed to ' + names[view.name(focus)],
    state.invert && 'inverted', state.collapse && 'without recursion',
    ...state.hides.map((name) => 'hidden: ' + name), ...state.drops.map((name) => 'dropped: ' + name),
    hasTime && timeText.textContent, hits && 'search: ' + state.query + ' (' + found.textContent + ')',
].filter(Boolean).join('; ');

const savePicture = () => {
    const margin = 12, width = +graph.getAttribute('width') + 2 * margin;
    const heatHeight = hasTime ? cellsPerColumn * CELL_HEIGHT + margin : 0, top = 56 + heatHeight;
    const height = top + +graph.getAttribute('height') + margin;
    const place = (x, y, ...inside) => {
        const group = svg('g', { transform: 'translate(' + x + ' ' + y + ')' });
        group.append(...inside.map((element) => element.cloneNode(true)));
        return group;
    };
    const line = (className, y, text) => {
        const element = svg('text', { class: className, x: margin, y });
        element.textContent = text;
        return element;
    };
    const title = svg('title', {}), style = svg('style', {}), root = svg('svg', { width, height, viewBox: '0 0 ' + width + ' ' + height });
    title.textContent = page.querySelector('title').textContent;
    style.textContent = page.querySelector('style').textContent;
    const drawing = svg('g', { class: 'app' });
    if (hasTime) drawing.append(place(margin, 50, heatPaths, spanMark));
    drawing.append(place(margin, top, shapes, labels));
    root.append(title, style, svg('rect', { class: 'back', width, height }), line('t', 26, title.textContent),
                line('n', 42, choiceText()), drawing);
    download(new XMLSerializer().serializeToString(root), 'image/svg+xml', '.svg');
};

// Does the graph show the stack? `stack` has the names without the domain.
const isShown = (stack) => {
    const path = state.upward ? [...state.path].reverse() : state.path;
    if (state.only) {
        const at = stack.indexOf(state.only), wanted = state.upward ? [...path, state.only] : [state.only, ...path];
        const from = state.upward ? at - path.length : at;
        return at >= 0 && wanted.every((name, i) => stack[from + i] === name);
    }
    if (state.invert) return state.path.every((name, i) => stack[stack.length - 1 - i] === name);
    return state.path.every((name, i) => stack[i] === name);
};

const foldedText = () => {
    const rest = table.rest[state.old ? OLD : NEW], lines = [], stack = [];
    for (let i = 0; i < table.count; i++) {
        stack.length = table.depthOf[i];
        stack.push(names[table.nameOf[i]]);
        if (rest[i] > 0 && isShown(stack.slice(1))) lines.push(stack.join(';') + ' ' + rest[i] + '\n');
    }
    return lines.join('');
};

const saveFolded = () => download(foldedText(), 'text/plain', '.folded');
tools.insertBefore(html('span', 'pair', button('Save SVG', 'save what is shown as a picture (s)', savePicture),
                        button('Save folded', 'save the stacks that are shown (l)', saveFolded)), info);
