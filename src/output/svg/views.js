// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Views of the shown frames. A view is a tree: it has a node `top`, and functions of a node.

// The recorded order. A node is a row of the table.
const viewFrames = (table, side) => {
    const { nameOf, parentOf, depthOf, endOf, rest, hidden, total } = table;
    return {
        top: 0,
        name: (i) => nameOf[i],
        parent: (i) => parentOf[i],
        depth: (i) => depthOf[i],
        total: (i, s = side) => total[s][i],
        self: (i) => rest[side][i] - hidden[side][i],
        kids: (i) => {
            const kids = [];
            for (let kid = i + 1; kid < endOf[i]; kid = endOf[kid])
                if (total[side][kid] > 0) kids.push(kid);
            return kids;
        },
    };
};

// A view whose nodes stand for several frames of one name. Nodes are made when they are shown.
// `expand(node, add)` calls add() for each frame that belongs to a kid of the node: with its
// name, the frame at which the kid continues, its weights of both sides, and its own weight.
// `root` has the weights of the first node: `total` of both sides, and `self`.
//
// A large profile has a hundred thousand nodes below one, so that arrays of numbers stand here
// for objects. The frames of a node are a list: `first` of the node, then `link`.
const viewMerged = (top, root, side, expand) => {
    const name = [], parent = [], depth = [], self = [], first = [], total = [[], []], kidsOf = [];
    const frame = [], link = [], weight = [[], []];
    const kidOf = new Int32Array(names.length);
    const put = (kid, above, level) => {
        parent.push(above);
        depth.push(level);
        self.push(0);
        first.push(-1);
        total[NEW].push(0);
        total[OLD].push(0);
        return name.push(kid) - 1;
    };
    const findKids = (i) => {
        const begin = name.length, kids = [];
        expand(i, (kidName, next, newWeight, oldWeight, own = 0) => {
            if (newWeight <= 0 && oldWeight <= 0) return;
            let kid = kidOf[kidName];
            if (kid < begin) kid = kidOf[kidName] = put(kidName, i, depth[i] + 1);
            link.push(first[kid]);
            weight[NEW].push(newWeight);
            weight[OLD].push(oldWeight);
            first[kid] = frame.push(next) - 1;
            total[NEW][kid] += newWeight;
            total[OLD][kid] += oldWeight;
            self[kid] += own;
        });
        for (let kid = begin; kid < name.length; kid++) if (total[side][kid] > 0) kids.push(kid);
        return kids.sort((a, b) => total[side][b] - total[side][a] || name[a] - name[b]);
    };
    const view = {
        top: 0,
        name: (i) => name[i],
        parent: (i) => parent[i],
        depth: (i) => depth[i],
        total: (i, s = side) => total[s][i],
        self: (i) => self[i],
        kids: (i) => kidsOf[i] = kidsOf[i] || findKids(i),
        visit: (i, act) => {
            for (let at = first[i]; at >= 0; at = link[at]) act(frame[at], weight[NEW][at], weight[OLD][at]);
        },
    };
    put(top, 0, 0);
    self[0] = root.self;
    for (const s of sides) total[s][0] = root.total[s];
    return view;
};

const addCallers = ({ nameOf, parentOf }, add) => (frame, newWeight, oldWeight) =>
    frame > 0 && add(nameOf[frame], parentOf[frame], newWeight, oldWeight);

// Leaf functions first, then their callers. The domain is no caller.
const viewInverted = (table, side) => {
    const { count, nameOf, parentOf } = table;
    const hidden = (s, frame) => s < sides.length ? table.hidden[s][frame] : 0;
    const own = (s, frame) => s < sides.length ? table.rest[s][frame] - hidden(s, frame) : 0;
    const root = { total: table.total.map((weights) => weights[0]), self: 0 };
    const view = viewMerged(nameOf[0], root, side, (node, add) => {
        if (node > 0) return view.visit(node, addCallers(table, add));
        for (let frame = 0; frame < count; frame++) {
            add(nameOf[frame], parentOf[frame], own(NEW, frame), own(OLD, frame), own(side, frame));
            add(HIDDEN, frame, hidden(NEW, frame), hidden(OLD, frame));
        }
    });
    return view;
};

// One function: its callees with positive depths, and its callers with negative ones. A frame
// below a frame of the same function counts only there, so that no sample counts twice.
const UP = 0x40000000; // nodes from here on are callers
const viewFunction = (table, side, name) => {
    const { count, nameOf, parentOf, endOf, rest, hidden, total } = table;
    const outer = [], root = { total: sides.map(() => 0), self: 0 };
    const weightOf = (s, frame) => s < sides.length ? total[s][frame] : 0;
    const selfOf = (frame) => rest[side][frame] - hidden[side][frame];
    for (let i = 1; i < count;) {
        if (nameOf[i] === name) {
            outer.push(i);
            root.self += selfOf(i);
            for (const s of sides) root.total[s] += total[s][i];
        }
        i = nameOf[i] === name ? endOf[i] : i + 1;
    }
    const addCallees = (add) => (frame) => {
        for (let kid = frame + 1; kid < endOf[frame]; kid = endOf[kid])
            add(nameOf[kid], kid, weightOf(NEW, kid), weightOf(OLD, kid), selfOf(kid));
    };
    const below = viewMerged(name, root, side, (node, add) =>
        node > 0 ? below.visit(node, addCallees(add)) : outer.forEach(addCallees(add)));
    const above = viewMerged(name, root, side, (node, add) => {
        const act = addCallers(table, add);
        if (node > 0) above.visit(node, act);
        else for (const frame of outer) act(parentOf[frame], weightOf(NEW, frame), weightOf(OLD, frame));
    });
    const raise = (nodes) => nodes.map((node) => node + UP);
    return {
        top: 0,
        name: (i) => i < UP ? below.name(i) : above.name(i - UP),
        parent: (i) => i < UP ? below.parent(i) : above.parent(i - UP) && above.parent(i - UP) + UP,
        depth: (i) => i < UP ? below.depth(i) : -above.depth(i - UP),
        total: (i, s = side) => i < UP ? below.total(i, s) : above.total(i - UP, s),
        self: (i) => i < UP ? below.self(i) : 0,
        kids: (i) => i < UP ? below.kids(i) : raise(above.kids(i - UP)),
        callers: () => raise(above.kids(0)),
    };
};
