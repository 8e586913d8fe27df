// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The state in the address of the page: a path of names, then switches.
const FLAGS = { exact: 'case', icicle: 'icicle', invert: 'invert', byName: 'names', noIdle: 'noidle', old: 'old' };
let saved = '';

const save = (isStep) => {
    const words = Object.keys(FLAGS).filter((key) => state[key]).map((key) => FLAGS[key]);
    if (state.query) words.push('s=' + encodeURIComponent(state.query));
    saved = '#/' + state.path.map(encodeURIComponent).join('/') + (words.length ? '?' + words.join('&') : '');
    if (location.hash === saved || (saved === '#/' && !location.hash)) return;
    if (isStep) location.hash = saved;
    else location.replace(saved);
};

const decode = (text) => {
    try {
        return decodeURIComponent(text);
    } catch (e) {
        return '';
    }
};

const load = () => {
    const [path, words] = location.hash.replace(/^#\/?/, '').split('?');
    const given = (words || '').split('&');
    for (const key of Object.keys(FLAGS)) state[key] = given.includes(FLAGS[key]);
    const query = given.find((word) => word.startsWith('s='));
    box.value = state.query = query ? decode(query.slice(2)) : '';
    state.path = path ? path.split('/').map(decode) : [];
    saved = location.hash;
    rebuild();
};
