// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The page: elements, buttons, and the state that they change.
//
// Names come from guests. They enter the page only through textContent, and leave it only
// through encodeURIComponent.
const HTML = 'http://www.w3.org/1999/xhtml';

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

const state = { path: [], query: '', exact: false, icicle: false, invert: false,
                byName: false, idle: true, old: false, table: false, only: '', upward: false,
                collapse: false, hides: [], drops: [], span: '' };
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
    toggle('invert', 'Invert', 'leaf functions first, callers above (o)'));
tools.append(toggle('collapse', 'No recursion', 'show functions that call themselves once (r)'),
    toggle('table', 'Functions', 'table of functions (t)'));
if (!compares) tools.append(toggle('byName', 'Color by name', 'a color for each name instead of each kind (n)'));
if (IDLE >= 0) tools.append(toggle('idle', 'Idle', 'show halted vCPUs (h)'));
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
const crumbs = html('nav', 'crumbs'), filters = html('nav', 'crumbs filters');
const gone = html('div', 'legend gone');
gone.style.display = 'none';
const about = html('footer', 'about');
const tip = html('div', 'tip');
const graph = svg('svg', { class: 'graph' });
const scroll = html('div', 'scroll', graph);
scroll.tabIndex = 0;
const timeBox = html('div', 'time');
const functions = html('div', 'functions');
// A small window has no room for the facts and the legend; a button shows them.
const info = button('i', 'facts of the run, and legend', () => {
    info.setAttribute('aria-pressed', app.classList.toggle('open'));
    draw();
});
info.className = 'info';
info.setAttribute('aria-pressed', false);
tools.append(info, button('?', 'all keys (?)', () => showHelp()));
const head = html('header', '', html('h1', '', page.querySelector('title').textContent),
    html('span', 'sub', still.querySelector('text.n').textContent),
    html('div', 'facts', ...all('.fact').map(factOf)));
const help = html('div', 'help');
help.style.display = 'none';
const app = html('div', 'app', head, tools,
    html('div', 'legend', ...all('.legend').map(legendOf), narrow), gone, timeBox, filters, crumbs,
    html('div', 'main', scroll, functions), about, tip, help);
const frame = svg('foreignObject', { id: 'app', width: '100%', height: '100%' });
frame.append(app);

const shapes = svg('g', {}), labels = svg('g', {});
const hoverMark = svg('rect', { class: 'mark' }), pickMark = svg('rect', { class: 'mark pick' });
graph.append(shapes, labels, hoverMark, pickMark);

const percent = (value, whole) => (whole > 0 ? (100 * value / whole).toFixed(1) : '0.0') + '\u00a0%';
const amount = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, '\u202f');
