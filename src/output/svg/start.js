// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Draws the page, now and when the window or the address changes.
const chooseView = (side) => {
    const only = state.only ? names.indexOf(state.only) : -1;
    if (only >= 0) return viewFunction(table, side, only);
    state.only = '';
    return state.invert ? viewInverted(table, side) : frames;
};

const rebuild = () => {
    const side = state.old ? OLD : NEW;
    table = filterFrames();
    sums = null;
    view = frames = viewFrames(table, side);
    if (compares) listGone();
    view = chooseView(side);
    focus = view.top;
    picked = -1;
    for (const name of state.path) {
        const kids = state.upward && focus === view.top && view.callers ? view.callers() : view.kids(focus);
        const kid = kids.find((node) => names[view.name(node)] === name);
        if (kid === undefined) break;
        picked = focus = kid;
    }
    search();
    drawFilters();
    describe(picked);
    draw();
    show(focus);
};

window.addEventListener('hashchange', () => { if (location.hash !== saved) load(); });
window.addEventListener('resize', () => {
    draw();
    show(focus);
});

const size = ['width', 'height', 'viewBox'].map((key) => [key, page.getAttribute(key)]);
// The browser need not lay out the static picture while it is not in the page.
const fill = () => {
    still.remove();
    page.classList.remove('live');
    frame.style.display = '';
    page.removeAttribute('viewBox');
    page.setAttribute('width', '100%');
    page.setAttribute('height', '100%');
};
// Paper shows the static picture.
const unfill = () => {
    page.append(still);
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
