// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Copies a stack to the clipboard.
const copy = (node) => {
    const path = pathTo(node).map((at) => names[view.name(at)]);
    if (!state.invert || state.only) path.unshift(names[view.name(view.top)]);
    if (state.invert || state.upward) path.reverse();
    const text = path.join(';') + ' ' + view.total(node);
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
