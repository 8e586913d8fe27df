// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What is known of a frame: below the graph, and at the pointer.

// The words of the legend for kinds of code
const kindWords = new Map(compares ? [] : all('.legend').map((group) =>
    [group.firstElementChild.getAttribute('class')[0], group.lastElementChild.textContent]));

// A name can contain the line of the source, or the image of an address without a name:
// "function (file.c:12)_[k]" or "[app+0x1a2b]".
const placeOf = (name) => {
    const line = /^(.*) \(([^()]+:\d+)\)(_\[[ik]\])?$/.exec(names[name]);
    const module = modules[name] || (/^\[(.+)\+0x[0-9a-f]+\]$/.exec(names[name]) || [])[1];
    return { name: line ? line[1] + (line[3] || '') : names[name],
             words: [line ? line[2] : '', module ? 'module ' + module : '', kindWords.get(kinds[name]) || '']
                 .filter(Boolean).join('  \u00b7  ') };
};

// A weight is a number of samples, or microseconds.
const weightText = (weight) =>
    isTime ? (weight / 1e6).toFixed(3) + '\u00a0s' : amount(weight) + (weight === 1 ? ' sample' : ' samples');

const share = (word, weight) => word + ' ' + percent(weight, frames.total(0)) + ' (' + weightText(weight) + ')';

// Describes a frame below the graph. Without a frame, the text says what one can do.
const describe = (node) => {
    if (node < 0) {
        about.replaceChildren(html('span', 'hint', 'Click a frame to zoom, or tap it twice.  / search   Enter next match   ' +
            'arrows move   Esc back   c copy stack   ? all keys'));
        return;
    }
    const total = view.total(node), whole = frames.total(0);
    const facts = [weightText(total), percent(total, whole) + ' of all'];
    if (focus !== view.top || state.only) facts.push(percent(total, view.total(focus)) + ' of what is shown');
    facts.push('self ' + percent(view.self(node), whole));
    if (compares) {
        const change = changeOf(node);
        facts.push('old ' + percent(view.total(node, OLD), frames.total(0, OLD)) +
            ', new ' + percent(view.total(node, NEW), frames.total(0, NEW)), pointsOf(change) + ' points' +
            (change.word ? ', ' + change.word : change.real ? '' : ', within chance'));
    }
    about.replaceChildren(html('b', '', names[view.name(node)]), html('span', '', facts.join('  \u00b7  ')));
    if (node === picked) about.append(actionsOf(node));
};

// Buttons for the picked frame
const actionsOf = (node) => html('span', 'actions',
    button('Callers and callees', 'all callers and callees of the function (f)', () => showOnly(view.name(node))),
    button('Hide function', 'its time counts for its caller (x, or Alt-click)', () => leaveOut('hides', node)),
    button('Drop stacks', 'leave out all stacks with the function (d, or Ctrl-click)', () => leaveOut('drops', node)),
    button('Copy', 'copy the stack (c)', () => copy(node)));

// Shows a box at the pointer.
const showBox = (title, lines, event) => {
    tip.style.display = 'block';
    tip.replaceChildren(html('b', '', title), ...lines.filter(Boolean).map((line) => html('div', '', line)));
    const right = event.clientX > window.innerWidth / 2;
    tip.style.left = right ? 'auto' : event.clientX + 14 + 'px';
    tip.style.right = right ? window.innerWidth - event.clientX + 10 + 'px' : 'auto';
    const below = event.clientY + 22, height = tip.offsetHeight;
    tip.style.top = (below + height > window.innerHeight ? event.clientY - height - 8 : below) + 'px';
};

const showTip = (node, event) => {
    tip.style.display = 'none';
    if (node < 0) return;
    const place = placeOf(view.name(node));
    showBox(place.name, [share('total', view.total(node)) + '  \u00b7  ' + share('self', view.self(node)), place.words], event);
};
