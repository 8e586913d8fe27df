// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The mouse and touch: the first tap on a frame shows its details, the second one zooms.
let touched = false;
graph.addEventListener('pointerdown', (event) => { touched = event.pointerType === 'touch'; });
graph.addEventListener('click', (event) => {
    const node = nodeAt(event);
    if (node < 0) return;
    if (event.altKey) leaveOut('hides', node);
    else if (event.ctrlKey || event.metaKey) leaveOut('drops', node);
    else if (touched && node !== picked) pick(node);
    else zoom(node);
});
graph.addEventListener('pointermove', (event) => {
    if (event.pointerType === 'touch') return;
    const node = nodeAt(event);
    mark(hoverMark, node);
    describe(node >= 0 ? node : picked);
    showTip(node, event);
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
