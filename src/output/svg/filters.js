// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the user leaves out: idle time, functions, stacks, recursion.
// Copies the weights of `table`, without stacks that have a name for which `drops` is true.
const copyWeights = (table, drops) => {
    const copy = { ...table };
    for (const list of ['rest', 'hidden']) copy[list] = table[list].map((weights) => weights.slice());
    copy.total = table.total.map((weights) => new Float64Array(weights.length));
    for (let i = 0; i < table.count;) {
        if (!drops(table.nameOf[i])) {
            i++;
            continue;
        }
        for (const side of sides)
            for (const list of [copy.rest, copy.hidden]) list[side].fill(0, i, table.endOf[i]);
        i = table.endOf[i];
    }
    sumUp(copy);
    return copy;
};

// Merges frames of one caller and name, which need not stand beside each other.
const makeTree = (rootName) => {
    const tree = { name: [rootName], parent: [0], first: [0], last: [0], link: [0], known: new Map() };
    tree.put = (parent, name) => {
        const key = parent * names.length + name;
        let id = tree.known.get(key);
        if (id !== undefined) return id;
        id = tree.name.push(name) - 1;
        tree.known.set(key, id);
        tree.parent.push(parent);
        for (const list of [tree.first, tree.last, tree.link]) list.push(0);
        if (tree.first[parent]) tree.link[tree.last[parent]] = id;
        else tree.first[parent] = id;
        tree.last[parent] = id;
        return id;
    };
    return tree;
};

// Numbers the frames of a tree as a table needs them. Returns the row of each frame.
const orderTree = ({ name, parent, first, link }, into) => {
    const rowOf = new Uint32Array(name.length), todo = [0];
    for (let row = 0; todo.length; row++) {
        const id = todo.pop(), above = rowOf[parent[id]];
        rowOf[id] = row;
        into.nameOf[row] = name[id];
        into.parentOf[row] = above;
        into.depthOf[row] = id > 0 ? into.depthOf[above] + 1 : 0;
        const kids = [];
        for (let kid = first[id]; kid; kid = link[kid]) kids.push(kid);
        while (kids.length) todo.push(kids.pop());
    }
    return rowOf;
};

// Removes each frame for which `isRemoved(name, caller)` is true. Its weight counts for its
// caller, which then calls what the frame has called.
const removeFrames = (table, isRemoved) => {
    const tree = makeTree(table.nameOf[0]), idOf = new Uint32Array(table.count);
    for (let i = 1; i < table.count; i++) {
        const name = table.nameOf[i], caller = idOf[table.parentOf[i]];
        idOf[i] = isRemoved(name, caller > 0 ? tree.name[caller] : -1) ? caller : tree.put(caller, name);
    }
    const shorter = makeTable(tree.name.length), rowOf = orderTree(tree, shorter);
    for (const list of ['rest', 'hidden'])
        for (const side of sides)
            for (let i = 0; i < table.count; i++) shorter[list][side][rowOf[idOf[i]]] += table[list][side][i];
    findEnds(shorter);
    sumUp(shorter);
    return shorter;
};

// The frames that are shown
const filterFrames = () => {
    const numbers = (list) => new Set(list.map((name) => names.indexOf(name)));
    const drops = numbers(state.drops), hides = numbers(state.hides);
    const all = framesOfSpan(), dropsIdle = !state.idle && IDLE >= 0;
    const kept = all === recorded && !drops.size && !dropsIdle ? recorded :
        copyWeights(all, (name) => drops.has(name) || (dropsIdle && name === IDLE));
    if (!hides.size && !state.collapse) return kept;
    return removeFrames(kept, (name, caller) => hides.has(name) || (state.collapse && name === caller));
};

const drawFilters = () => {
    const chip = (key, word) => (name) => button(word + ' ' + name + '  \u00d7', 'undo', () => {
        state[key] = state[key].filter((other) => other !== name);
        rebuild();
        save(true);
    });
    filters.replaceChildren(...state.hides.map(chip('hides', 'hidden:')), ...state.drops.map(chip('drops', 'dropped:')));
    filters.style.display = filters.children.length ? '' : 'none';
};

// Hides a function, or drops its stacks. The domain stays.
const leaveOut = (key, node) => {
    const name = names[view.name(node)];
    if (node === view.top && !state.only) return;
    if (!state[key].includes(name)) state[key] = [...state[key], name];
    if (state.path.includes(name)) state.path = key === 'hides' ? state.path.filter((other) => other !== name) : [];
    if (state.only === name) state.only = '';
    rebuild();
    save(true);
};
