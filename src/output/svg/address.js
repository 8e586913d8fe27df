// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The state in the address of the page: a path of names, then switches and texts.
const FLAGS = { exact: 'case', icicle: 'icicle', invert: 'invert', byName: 'names', old: 'old',
                upward: 'callers', collapse: 'collapse' };
const TEXTS = { query: 's', only: 'function', span: 'time' };
const LISTS = { hides: 'hide', drops: 'drop' };
const WIDE = 1400; // A window of this width has the table from the start.
let saved = '';

const save = (isStep) => {
    const words = Object.keys(FLAGS).filter((key) => state[key]).map((key) => FLAGS[key]);
    if (state.idle === uncountedIdles > 0) words.push(state.idle ? 'idle' : 'noidle');
    if (state.table !== window.innerWidth >= WIDE) words.push(state.table ? 'table' : 'notable');
    for (const [key, word] of Object.entries(TEXTS))
        if (state[key]) words.push(word + '=' + encodeURIComponent(state[key]));
    for (const [key, word] of Object.entries(LISTS))
        for (const text of state[key]) words.push(word + '=' + encodeURIComponent(text));
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
    const textsOf = (word) => given.filter((other) => other.startsWith(word + '='))
        .map((other) => decode(other.slice(word.length + 1)));
    for (const [key, word] of Object.entries(TEXTS)) state[key] = textsOf(word)[0] || '';
    for (const [key, word] of Object.entries(LISTS)) state[key] = textsOf(word);
    state.table = given.includes('table') || (window.innerWidth >= WIDE && !given.includes('notable'));
    state.idle = uncountedIdles ? given.includes('idle') : !given.includes('noidle');
    box.value = state.query;
    state.path = path ? path.split('/').map(decode) : [];
    saved = location.hash;
    rebuild();
};
