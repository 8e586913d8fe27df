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
// name, its weights of both sides, and the frame at which the kid continues.
//
// A large profile has a hundred thousand nodes below one, so that arrays of numbers stand here
// for objects. The frames of a node are a list: `first` of the node, then `link`.
const viewMerged = (top, side, expand) => {
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
        expand(i, (kidName, next, newWeight, oldWeight, isSelf) => {
            if (newWeight <= 0 && oldWeight <= 0) return;
            let kid = kidOf[kidName];
            if (kid < begin) kid = kidOf[kidName] = put(kidName, i, depth[i] + 1);
            link.push(first[kid]);
            weight[NEW].push(newWeight);
            weight[OLD].push(oldWeight);
            first[kid] = frame.push(next) - 1;
            total[NEW][kid] += newWeight;
            total[OLD][kid] += oldWeight;
            if (isSelf) self[kid] += side === OLD ? oldWeight : newWeight;
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
    view.kids(0);
    for (const s of sides)
        for (let kid = 1; kid < name.length; kid++) total[s][0] += total[s][kid];
    return view;
};

// Leaf functions first, then their callers. The domain is no caller.
const viewInverted = (table, side) => {
    const { nameOf, parentOf, rest, hidden } = table;
    const weigh = (s, frame) => sides.length > s ? rest[s][frame] - hidden[s][frame] : 0;
    const lose = (s, frame) => sides.length > s ? hidden[s][frame] : 0;
    const view = viewMerged(nameOf[0], side, (node, add) => {
        if (node > 0) {
            view.visit(node, (frame, ...weights) => frame > 0 && add(nameOf[frame], parentOf[frame], ...weights));
            return;
        }
        for (let frame = 0; frame < table.count; frame++) {
            add(nameOf[frame], parentOf[frame], weigh(NEW, frame), weigh(OLD, frame), true);
            add(HIDDEN, frame, lose(NEW, frame), lose(OLD, frame));
        }
    });
    return view;
};
