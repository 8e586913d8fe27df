// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Keys. Each key has a row, from which the list of all keys is made.
const move = (deeper, aside) => {
    if (picked < 0) return pick(focus);
    if (!deeper) {
        const row = rowOf(picked);
        const at = row.findIndex((spot) => spot.node === picked) + aside;
        if (row[at]) pick(row[at].node);
        return;
    }
    const isBack = deeper < 0 && view.callers && view.depth(picked) <= 0;
    if (picked !== view.top && (deeper < 0) !== view.depth(picked) < 0) return pick(view.parent(picked));
    const kids = isBack && picked === view.top ? view.callers() : deeper > 0 || isBack ? view.kids(picked).slice() : [];
    kids.sort((a, b) => view.total(b) - view.total(a));
    if (kids.length) pick(kids[0]);
};

const escape = () => {
    if (help.style.display !== 'none') showHelp();
    else if (state.query) {
        box.value = state.query = '';
        search();
        draw();
        save(false);
    } else if (focus !== view.top) zoom(view.parent(focus));
    else if (state.only) showAll();
    else if (state.span) setSpan(null);
    box.blur();
    scroll.focus();
};

const flip = (key) => {
    state[key] = !state[key];
    if (key === 'invert') state.path = [];
    if (key === 'invert') state.only = '';
    rebuild();
    save(true);
};

const current = () => picked >= 0 ? picked : focus;
const find = () => {
    box.focus();
    box.select();
};
const enter = (event) => {
    if (hits) step(event.shiftKey ? -1 : 1);
    else if (picked >= 0) zoom(picked);
};
// Rows of: keys, their names for people, what they do, the function
const KEYS = [
    [['/'], '/ or Ctrl-F', 'search', find],
    [['Enter'], 'Enter', 'zoom to the frame; in a search, the next match (Shift: the previous one)', enter],
    [['ArrowUp', 'ArrowDown'], 'Up, Down', 'move to a callee or caller',
        (event) => move((event.key === 'ArrowUp') === state.icicle ? -1 : 1, 0)],
    [['ArrowLeft', 'ArrowRight'], 'Left, Right', 'move to a neighbor', (event) => move(0, event.key === 'ArrowLeft' ? -1 : 1)],
    [['Escape'], 'Esc', 'end the search, zoom out by one frame, leave the function, or show all times', escape],
    [['Home'], 'Home', 'show everything: zoom out, undo what is hidden or dropped', showAll],
    [['i'], 'i', 'roots on top, or at the bottom', () => flip('icicle')],
    [['o'], 'o', 'invert: leaf functions first, callers above', () => flip('invert')],
    [['f'], 'f', 'all callers and callees of the function', () => showOnly(view.name(current()))],
    [['t'], 't', 'table of functions', () => flip('table')],
    [['r'], 'r', 'show a function that calls itself once', () => flip('collapse')],
    [['x'], 'x or Alt-click', 'hide the function: its time counts for its caller', () => leaveOut('hides', current())],
    [['d'], 'd or Ctrl-click', 'drop all stacks with the function', () => leaveOut('drops', current())],
    [['s'], 's', 'save what is shown as a picture', savePicture],
    [['l'], 'l', 'save the stacks that are shown, as folded text', saveFolded],
    [['c'], 'c', 'copy the stack', () => copy(current())],
];
if (compares) KEYS.push([['w'], 'w', 'widths of the old profile', () => flip('old')]);
else KEYS.push([['n'], 'n', 'color by name, or by kind of code', () => flip('byName')]);
if (IDLE >= 0) KEYS.push([['h'], 'h', 'show halted vCPUs, or hide them', () => flip('idle')]);
if (hasTime) KEYS.push([['m'], 'm', 'go to the heat map: arrows select a time, with Shift a longer one', () => heat.focus()]);
KEYS.push([['?'], '?', 'all keys', () => showHelp()]);

const showHelp = () => {
    const isShown = help.style.display === 'none';
    const rows = KEYS.map(([, key, text]) => html('tr', '', html('th', '', key), html('td', '', text)));
    help.replaceChildren(html('table', '', ...rows), button('Close', 'close (Esc)', showHelp));
    help.style.display = isShown ? '' : 'none';
    if (isShown) help.lastChild.focus();
    else scroll.focus();
};

const pressInBox = (event) => {
    if (event.key === 'Enter') step(event.shiftKey ? -1 : 1);
    else if (event.key === 'Escape') escape();
    else return;
    event.preventDefault();
};
window.addEventListener('keydown', (event) => {
    const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
    const row = KEYS.find(([keys]) => keys.includes(event.key));
    if (event.key === 'f' && (event.ctrlKey || event.metaKey)) find();
    else if (event.target === box) return pressInBox(event);
    else if (event.target === heat && moveSpan(event)) return event.preventDefault();
    else if (!row || hasModifier) return;
    else if (event.target.nodeName === 'button' && event.key === 'Enter') return;
    else row[3](event);
    event.preventDefault();
});
