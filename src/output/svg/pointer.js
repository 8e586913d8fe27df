// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The mouse and touch: the first tap on a frame shows its details, the second one zooms.
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
