// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Draws the table of frames in <metadata> to the size of the window. Users can zoom,
// search and invert the graph. Without the script, the static picture stays.
//
// Names come from guests. They enter the page only through textContent, and leave it only
// through encodeURIComponent.
(() => {
'use strict';
const SVG = 'http://www.w3.org/2000/svg';
const HTML = 'http://www.w3.org/1999/xhtml';
const TABLES = 'https://virt-uprof.org/xmlns/flamegraph/1.0';
const ROW = 18, NARROW = 0.5, INSET = 4, LABEL_MIN = 5;
const NEW = 0, OLD = 1;

const page = document.documentElement;
// Inside another page, the file stays a static picture.
if (page.namespaceURI !== SVG) return;

// ---- the profile ----

const meta = page.querySelector('metadata');
const part = (name) => meta.getElementsByTagNameNS(TABLES, name)[0];
const textOf = (name) => part(name) ? part(name).textContent : '';
const linesOf = (name) => textOf(name).split('\n').slice(0, -1);
const compares = part('graph').getAttribute('type') === 'diff';
const sides = compares ? [NEW, OLD] : [NEW];

const names = [], kinds = [], hashes = [];
for (const line of linesOf('names')) {
    kinds.push(line[0]);
    hashes.push(parseInt(line.slice(1, 3), 16));
    names.push(line.slice(3));
}
const HIDDEN = names.push('[too narrow to be kept]') - 1;
kinds.push('m');
hashes.push(0);
const IDLE = names.indexOf('[idle]');

const rows = linesOf('frames');
const count = rows.length;
const nameOf = new Uint32Array(count), parentOf = new Uint32Array(count);
const depthOf = new Uint32Array(count), endOf = new Uint32Array(count);
const rest = sides.map(() => new Float64Array(count));
const hidden = sides.map(() => new Float64Array(count));
rows.forEach((row, i) => {
    const values = row.split(' ').map((value) => parseInt(value, 36));
    let parent = i - 1;
    for (let up = values[1]; up > 0; up--) parent = parentOf[parent];
    nameOf[i] = values[0];
    parentOf[i] = i > 0 ? parent : 0;
    depthOf[i] = i > 0 ? depthOf[parent] + 1 : 0;
    for (const side of sides) {
        rest[side][i] = values[2 + 2 * side] || 0;
        hidden[side][i] = values[3 + 2 * side] || 0;
    }
});
for (let i = count - 1; i >= 0; i--) {
    endOf[i] = Math.max(endOf[i], i + 1);
    if (i > 0) endOf[parentOf[i]] = Math.max(endOf[parentOf[i]], endOf[i]);
}

// ---- two views with the same functions ----

// Callers first: the recorded order. A node is a row of the table.
const makeCallers = (side, hideIdle) => {
    const totals = sides.map((s) => {
        const total = rest[s].slice();
        for (let i = count - 1; i >= 0; i--) {
            if (hideIdle && nameOf[i] === IDLE) total[i] = 0;
            if (i > 0) total[parentOf[i]] += total[i];
        }
        return total;
    });
    return {
        top: 0,
        name: (i) => nameOf[i],
        parent: (i) => parentOf[i],
        depth: (i) => depthOf[i],
        total: (i, s) => totals[s === undefined ? side : s][i],
        self: (i) => hideIdle && nameOf[i] === IDLE ? 0 : rest[side][i] - hidden[side][i],
        kids: (i) => {
            const kids = [];
            for (let kid = i + 1; kid < endOf[i]; kid = endOf[kid])
                if (totals[side][kid] > 0) kids.push(kid);
            return kids;
        },
    };
};

// Callees first: leaf functions, then their callers. Nodes are made when they are shown.
const makeCallees = (side, hideIdle) => {
    const nodes = [{ name: nameOf[0], parent: 0, depth: 0, total: sides.map(() => 0), from: [], kids: null }];
    const add = (kids, parent, name, frame, weight) => {
        let kid = kids.get(name);
        if (kid === undefined) {
            kid = nodes.push({ name, parent, depth: nodes[parent].depth + 1,
                               total: sides.map(() => 0), from: [], kids: null }) - 1;
            kids.set(name, kid);
        }
        nodes[kid].from.push([frame, weight]);
        for (const s of sides) nodes[kid].total[s] += weight[s];
    };
    const expand = (i) => {
        const kids = new Map();
        if (i === 0) {
            for (let frame = 0; frame < count; frame++) {
                if (hideIdle && nameOf[frame] === IDLE) continue;
                const own = sides.map((s) => rest[s][frame] - hidden[s][frame]);
                const lost = sides.map((s) => hidden[s][frame]);
                for (const s of sides) nodes[0].total[s] += own[s] + lost[s];
                if (own.some((w) => w > 0)) add(kids, 0, nameOf[frame], parentOf[frame], own);
                if (lost.some((w) => w > 0)) add(kids, 0, HIDDEN, frame, lost);
            }
        } else {
            for (const [frame, weight] of nodes[i].from)
                if (frame > 0) add(kids, i, nameOf[frame], parentOf[frame], weight);
        }
        nodes[i].kids = [...kids.values()].filter((kid) => nodes[kid].total[side] > 0)
            .sort((a, b) => nodes[b].total[side] - nodes[a].total[side] ||
                  (names[nodes[a].name] < names[nodes[b].name] ? -1 : 1));
    };
    expand(0);
    return {
        top: 0,
        name: (i) => nodes[i].name,
        parent: (i) => nodes[i].parent,
        depth: (i) => nodes[i].depth,
        total: (i, s) => nodes[i].total[s === undefined ? side : s],
        self: () => 0,
        kids: (i) => {
            if (!nodes[i].kids) expand(i);
            return nodes[i].kids;
        },
    };
};

// ---- the page ----

const make = (space, tag, className, ...inside) => {
    const element = document.createElementNS(space, tag);
    if (className) element.setAttribute('class', className);
    element.append(...inside);
    return element;
};
const html = (tag, className, ...inside) => make(HTML, tag, className, ...inside);
const svg = (tag, attributes) => {
    const element = make(SVG, tag, '');
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
};

const state = { path: [], query: '', exact: false, icicle: false, callees: false,
                byName: false, noIdle: false, old: false };
const still = page.querySelector('#static');

const button = (text, title, act) => {
    const element = html('button', '', text);
    element.type = 'button';
    element.title = title;
    element.addEventListener('click', act);
    return element;
};
const toggles = [];
const toggle = (key, text, title) => {
    const element = button(text, title, () => flip(key));
    toggles.push(() => element.setAttribute('aria-pressed', state[key]));
    return element;
};

const box = html('input', '');
box.type = 'search';
box.placeholder = 'search: a name or a regular expression';
box.spellcheck = false;
box.setAttribute('aria-label', 'search frames');
const found = html('output', 'found');
const exact = toggle('exact', 'Aa', 'match case');
const previous = button('\u2039', 'previous match (Shift-Enter)', () => step(-1));
const next = button('\u203a', 'next match (Enter)', () => step(1));
const seek = html('span', 'seek', box, exact, previous, next);
const tools = html('div', 'tools', seek, found, html('span', 'gap'),
    toggle('icicle', 'Icicle', 'roots on top (i)'),
    toggle('callees', 'Callees first', 'leaf functions first, then their callers (o)'));
if (!compares) tools.append(toggle('byName', 'Color by name', 'a color for each name instead of each kind (n)'));
if (IDLE >= 0) tools.append(toggle('noIdle', 'Hide idle', 'hide halted vCPUs (h)'));
if (compares) tools.append(toggle('old', 'Old layout', 'widths of the old profile (w)'));

const factOf = (group) => html('span', 'fact', html('small', '', group.firstElementChild.textContent),
                               html('b', '', group.lastElementChild.textContent));
const legendOf = (group) => {
    const swatch = make(SVG, 'svg', 'swatch');
    swatch.append(svg('rect', { class: group.firstElementChild.getAttribute('class'),
                                width: 11, height: 11, rx: 2 }));
    return html('span', 'key', swatch, group.lastElementChild.textContent);
};
const all = (selector) => [...still.querySelectorAll(selector)];
const narrow = html('span', 'narrow');
const crumbs = html('nav', 'crumbs');
const gone = html('div', 'legend gone');
gone.style.display = 'none';
const about = html('footer', 'about');
const tip = html('div', 'tip');
const graph = svg('svg', { class: 'graph' });
const scroll = html('div', 'scroll', graph);
scroll.tabIndex = 0;
const head = html('header', '', html('h1', '', names[nameOf[0]]),
    html('span', 'sub', still.querySelector('text.n').textContent),
    html('div', 'facts', ...all('.fact').map(factOf)));
const app = html('div', 'app', head, tools,
    html('div', 'legend', ...all('.legend').map(legendOf), narrow), gone, crumbs, scroll, about, tip);
const frame = svg('foreignObject', { id: 'app', width: '100%', height: '100%' });
frame.append(app);

const shapes = svg('g', {}), labels = svg('g', {});
const hoverMark = svg('rect', { class: 'mark' }), pickMark = svg('rect', { class: 'mark pick' });
graph.append(shapes, labels, hoverMark, pickMark);

// ---- numbers and changes ----

let view, callers;

const percent = (value, whole) => (whole > 0 ? (100 * value / whole).toFixed(1) : '0.0') + '\u00a0%';
const amount = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, '\u202f');

// as in change.c
const LIMITS = [5000, 10000, 20000, 40000, 80000, 160000];
const changeOf = (node) => {
    const a = view.total(node, OLD), b = view.total(node, NEW);
    const allA = view.total(view.top, OLD), allB = view.total(view.top, NEW);
    const shareA = allA > 0 ? a / allA : 0, shareB = allB > 0 ? b / allB : 0;
    const rate = (a + b) / (allA + allB);
    const sigma = Math.sqrt(rate * (1 - rate) * (1 / allA + 1 / allB));
    const real = allA > 0 && allB > 0 && a + b >= 30 && Math.abs(shareB - shareA) > 3 * sigma;
    const ppm = Math.trunc(shareB * 1e6) - Math.trunc(shareA * 1e6);
    const step = 1 + LIMITS.filter((limit) => Math.abs(ppm) >= limit).length;
    return { ppm, real, word: a === 0 ? 'new' : b === 0 ? 'gone' : '',
             style: real ? (ppm > 0 ? 'r' : 'b') + step : 'g0' };
};

const labelOf = (node) => names[view.name(node)] +
    (compares && view.total(node, OLD) === 0 && view.total(view.parent(node), OLD) > 0 ? ' (new)' : '');

// Lists frames that only the old profile has: the new layout lacks them. Each entry opens the
// old layout.
const listGone = () => {
    const found = [];
    for (let i = 1; i < count;) {
        const isGone = callers.total(i, NEW) === 0 && callers.total(i, OLD) > 0;
        if (isGone) found.push(i);
        i = isGone ? endOf[i] : i + 1;
    }
    const share = (i) => percent(callers.total(i, OLD), callers.total(0, OLD));
    const real = found.filter((i) => changeOf(i).real)
        .sort((a, b) => callers.total(b, OLD) - callers.total(a, OLD)).slice(0, 8);
    gone.style.display = real.length ? '' : 'none';
    gone.replaceChildren('gone:', ...real.map((i) => button(names[nameOf[i]] + '  ' + share(i),
        'show it in the old layout', () => {
            state.old = true;
            state.callees = false;
            rebuild();
            zoom(i);
        })));
};

// ---- drawing ----

let drawn = [], focus = 0, picked = -1, letter = 6.6, dark = false, hits = null, order = [];

const depthLimit = () => {
    let deepest = 0;
    drawn.forEach((row, depth) => { if (row.length) deepest = depth; });
    return deepest;
};

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
    const put = (node, x, w) => (drawn[view.depth(node)] = drawn[view.depth(node)] || []).push({ node, x, w });
    let unseen = 0;
    drawn = [];
    for (let up = focus; up !== view.top;) {
        up = view.parent(up);
        put(up, 0, width);
    }
    const whole = view.total(focus);
    const todo = whole > 0 ? [[focus, 0]] : [];
    while (todo.length) {
        const [node, left] = todo.pop();
        put(node, left * width / whole, view.total(node) * width / whole);
        let at = left;
        for (const kid of view.kids(node)) {
            if (view.total(kid) * width / whole >= NARROW) todo.push([kid, at]);
            else unseen++;
            at += view.total(kid);
        }
    }
    for (const row of drawn) if (row) row.sort((a, b) => a.x - b.x);
    return unseen;
};

const topOf = (depth, deepest) => (state.icicle ? depth : deepest - depth) * ROW;

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

const paint = (deepest) => {
    const paths = new Map();
    let used = 0;
    drawn.forEach((row, depth) => {
        const y = topOf(depth, deepest);
        for (const { node, x, w } of row) {
            const style = colorOf(node) + (depth < view.depth(focus) ? ' above' : '');
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
    const deepest = depthLimit();
    const at = node >= 0 && (drawn[view.depth(node)] || []).find((spot) => spot.node === node);
    rect.setAttribute('width', at ? Math.max(at.w - 0.5, 1) : 0);
    if (!at) return null;
    rect.setAttribute('x', at.x);
    rect.setAttribute('y', topOf(view.depth(node), deepest));
    rect.setAttribute('height', ROW - 1);
    return at;
};

const draw = () => {
    const width = Math.max(scroll.clientWidth, 100);
    const unseen = arrange(width);
    const deepest = depthLimit();
    graph.setAttribute('width', width);
    graph.setAttribute('height', (deepest + 1) * ROW);
    paint(deepest);
    mark(hoverMark, -1);
    mark(pickMark, picked);
    tip.style.display = 'none';
    const kept = count, sent = +part('graph').getAttribute('all');
    narrow.textContent = [unseen ? amount(unseen) + ' callees narrower than half a pixel: zoom to see them' : '',
        sent > kept ? amount(sent - kept) + ' of ' + amount(sent) + ' frames are not in this file' : '']
        .filter(Boolean).join('; ') || 'all frames shown';
    drawCrumbs();
    toggles.forEach((show) => show());
};

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

// ---- user actions ----

const describe = (node) => {
    if (node < 0) {
        about.replaceChildren(html('span', 'hint', 'Click a frame to zoom, or tap it twice.  / search   Enter next match   ' +
            'arrows move   Esc back   c copy stack   i icicle   o callees first'));
        return;
    }
    const total = view.total(node), whole = view.total(view.top), self = view.self(node);
    const facts = [amount(total) + ' samples', percent(total, whole) + ' of all'];
    if (focus !== view.top) facts.push(percent(total, view.total(focus)) + ' of what is shown');
    if (!state.callees) facts.push('self ' + percent(self, whole));
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
    const row = drawn[state.icicle ? line : depthLimit() - line] || [];
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
    const y = topOf(view.depth(node), depthLimit());
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

// Finds all matches, in the order of the table; if callees are first, only frames that are drawn.
const search = () => {
    let test = null;
    box.classList.remove('bad');
    if (state.query) {
        try {
            test = new RegExp(state.query, state.exact ? '' : 'i');
        } catch (e) {
            box.classList.add('bad');
        }
    }
    hits = test ? names.map((name) => test.test(name)) : null;
    found.textContent = '';
    if (!hits) return;
    let covered = 0, n = 0, skip = 0, weight = callers.total(0);
    for (let i = 0; i < count; i++) {
        if (!hits[nameOf[i]] || callers.total(i) === 0) continue;
        n++;
        if (i >= skip) {
            covered += callers.total(i);
            skip = endOf[i];
        }
    }
    found.textContent = amount(n) + (n === 1 ? ' frame, ' : ' frames, ') + percent(covered, weight);
};

const step = (way) => {
    if (!hits) return;
    order = [];
    if (state.callees) {
        for (const row of drawn) for (const { node } of row || []) if (hits[view.name(node)]) order.push(node);
    } else {
        for (let i = 0; i < count; i++) if (hits[nameOf[i]] && view.total(i) > 0) order.push(i);
    }
    if (!order.length) return;
    const at = order.indexOf(picked);
    pick(order[at < 0 ? (way > 0 ? 0 : order.length - 1) : (at + way + order.length) % order.length]);
};

const copy = (node) => {
    const path = pathTo(node).map((at) => names[view.name(at)]);
    const text = (state.callees ? path.reverse() : [names[nameOf[0]], ...path]).join(';') + ' ' + view.total(node);
    const byHand = () => {
        const area = html('textarea', '');
        area.value = text;
        app.append(area);
        area.select();
        document.execCommand('copy');
        area.remove();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).catch(byHand);
    else byHand();
    about.append(html('span', 'hint', 'copied'));
};

const move = (deeper, aside) => {
    if (picked < 0) return pick(focus);
    if (deeper > 0) {
        const kids = view.kids(picked).slice().sort((a, b) => view.total(b) - view.total(a));
        if (kids.length) pick(kids[0]);
    } else if (deeper < 0) {
        if (picked !== view.top) pick(view.parent(picked));
    } else {
        const row = drawn[view.depth(picked)] || [];
        const at = row.findIndex((spot) => spot.node === picked) + aside;
        if (row[at]) pick(row[at].node);
    }
};

const escape = () => {
    if (state.query) {
        box.value = state.query = '';
        search();
        draw();
        save(false);
    } else if (focus !== view.top) zoom(view.parent(focus));
    box.blur();
    scroll.focus();
};

// ---- state in the address: a path of names, then switches ----

const FLAGS = { exact: 'case', icicle: 'icicle', callees: 'callees', byName: 'names', noIdle: 'noidle', old: 'old' };
let saved = '';

const save = (isStep) => {
    const words = Object.keys(FLAGS).filter((key) => state[key]).map((key) => FLAGS[key]);
    if (state.query) words.push('s=' + encodeURIComponent(state.query));
    saved = '#/' + state.path.map(encodeURIComponent).join('/') + (words.length ? '?' + words.join('&') : '');
    if (location.hash === saved || (saved === '#/' && !location.hash)) return;
    if (isStep) location.hash = saved;
    else location.replace(saved);
};

const decode = (text) => {
    try {
        return decodeURIComponent(text);
    } catch (e) {
        return '';
    }
};

const load = () => {
    const [path, words] = location.hash.replace(/^#\/?/, '').split('?');
    const given = (words || '').split('&');
    for (const key of Object.keys(FLAGS)) state[key] = given.includes(FLAGS[key]);
    const query = given.find((word) => word.startsWith('s='));
    box.value = state.query = query ? decode(query.slice(2)) : '';
    state.path = path ? path.split('/').map(decode) : [];
    saved = location.hash;
    rebuild();
};

// ---- start ----

const rebuild = () => {
    const side = state.old ? OLD : NEW;
    callers = makeCallers(side, state.noIdle);
    view = callers;
    if (compares) listGone();
    if (state.callees) view = makeCallees(side, state.noIdle);
    focus = view.top;
    picked = -1;
    for (const name of state.path) {
        const kid = view.kids(focus).find((node) => names[view.name(node)] === name);
        if (kid === undefined) break;
        picked = focus = kid;
    }
    search();
    draw();
    show(focus);
    describe(picked);
};

let touched = false;
graph.addEventListener('pointerdown', (event) => { touched = event.pointerType === 'touch'; });
graph.addEventListener('click', (event) => {
    const node = nodeAt(event);
    if (node < 0) return;
    if (touched && node !== picked) pick(node);
    else zoom(node);
});
graph.addEventListener('pointermove', (event) => {
    if (event.pointerType === 'touch') return;
    const node = nodeAt(event);
    mark(hoverMark, node);
    describe(node >= 0 ? node : picked);
    tip.style.display = node >= 0 ? 'block' : 'none';
    if (node < 0) return;
    tip.textContent = names[view.name(node)] + '  ' + percent(view.total(node), view.total(view.top));
    const right = event.clientX > window.innerWidth / 2;
    tip.style.left = right ? 'auto' : event.clientX + 14 + 'px';
    tip.style.right = right ? window.innerWidth - event.clientX + 10 + 'px' : 'auto';
    const below = event.clientY + 22;
    tip.style.top = (below + 40 > window.innerHeight ? event.clientY - 40 : below) + 'px';
});
graph.addEventListener('pointerleave', () => {
    mark(hoverMark, -1);
    tip.style.display = 'none';
    describe(picked);
});
box.addEventListener('input', () => {
    state.query = box.value;
    search();
    draw();
    save(false);
});

const flip = (key) => {
    state[key] = !state[key];
    if (key === 'callees') state.path = [];
    rebuild();
    save(true);
};
const keys = {
    i: () => flip('icicle'), o: () => flip('callees'),
    n: () => !compares && flip('byName'), h: () => IDLE >= 0 && flip('noIdle'),
    w: () => compares && flip('old'),
    c: () => copy(picked >= 0 ? picked : focus), Home: () => zoom(view.top), Enter: () => {
        if (hits) step(1);
        else if (picked >= 0) zoom(picked);
    },
    ArrowUp: () => move(state.icicle ? -1 : 1, 0), ArrowDown: () => move(state.icicle ? 1 : -1, 0),
    ArrowLeft: () => move(0, -1), ArrowRight: () => move(0, 1), Escape: escape,
};
window.addEventListener('keydown', (event) => {
    const wantsBox = event.key === '/' || (event.key === 'f' && (event.ctrlKey || event.metaKey));
    if (event.target === box) {
        if (event.key === 'Enter') step(event.shiftKey ? -1 : 1);
        else if (event.key === 'Escape') escape();
        else return;
    } else if (wantsBox) {
        box.focus();
        box.select();
    } else if (keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
        if (event.target.nodeName === 'button' && event.key === 'Enter') return;
        if (event.key === 'Enter' && event.shiftKey) step(-1);
        else keys[event.key]();
    } else return;
    event.preventDefault();
});
window.addEventListener('hashchange', () => { if (location.hash !== saved) load(); });
window.addEventListener('resize', () => {
    draw();
    show(focus);
});

const size = ['width', 'height', 'viewBox'].map((key) => [key, page.getAttribute(key)]);
const fill = () => {
    still.style.display = 'none';
    frame.style.display = '';
    page.removeAttribute('viewBox');
    page.setAttribute('width', '100%');
    page.setAttribute('height', '100%');
};
// Paper shows the static picture.
const unfill = () => {
    still.style.display = '';
    frame.style.display = 'none';
    for (const [key, value] of size) page.setAttribute(key, value);
};
const night = window.matchMedia('(prefers-color-scheme: dark)');
const dim = () => { dark = night.matches; };
night.addEventListener('change', () => {
    dim();
    draw();
});
window.addEventListener('beforeprint', unfill);
window.addEventListener('afterprint', () => {
    fill();
    draw();
});

dim();
fill();
page.append(frame);
const ruler = svg('text', { class: 'l' });
ruler.textContent = 'M'.repeat(50);
labels.append(ruler);
letter = ruler.getComputedTextLength() / 50 || letter;
load();
})();
