/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `--profile-html`: a flame graph of a step and the table of its
 * nodes. Names come from a graph's file: they reach the page as text only (el,
 * textContent), never as markup. */
'use strict';
const root = document.documentElement;
root.dataset.errors = 0;
addEventListener('error', e => {
  root.dataset.errors = 1 + +root.dataset.errors;
  root.dataset.error = e.message + ' line ' + e.lineno;
});

/* ---- Small things */

function el(name, attrs, ...inside) {
  const e = document.createElement(name);
  for (const k in attrs || {}) {
    if (k === 'style') e.style.cssText = attrs[k];
    else if (k.startsWith('on')) e.addEventListener(k.slice(2), attrs[k]);
    else e.setAttribute(k, attrs[k]);
  }
  for (const i of inside) if (i !== null && i !== undefined) e.append(i);
  return e;
}
function timeText(ns) {
  return ns < 1e4 ? Math.round(ns) + ' ns' :
    ns < 1e7 ? (ns / 1e3).toFixed(2) + ' us' :
    ns < 1e10 ? (ns / 1e6).toFixed(2) + ' ms' : (ns / 1e9).toFixed(2) + ' s';
}
const percent = x => (100 * x).toFixed(1) + ' %';
const held = JSON.parse(document.getElementById('profile').textContent);
const profile = held.profile, nodes = profile.nodes;
const byId = new Map(nodes.map(n => [n.id, n]));
const page = document.getElementById('page');
let chosen = null, zoomed = null;

/* ---- The tree: scopes of names, nodes, nodes of bodies */

/* A node within a body has its loop's name, most often as its scope. */
function ownName(n) {
  return n.within && n.node.startsWith(n.within + '/') ?
    n.node.slice(n.within.length + 1) : n.node;
}
/* A frame's |own| is its node's own time, |all| that with all above it. */
function frame(name, up) {
  const f = {name, up, own: 0, all: 0, kids: new Map(), node: null,
    depth: up ? up.depth + 1 : 0};
  if (up) up.kids.set(name, f);
  return f;
}
function placeOf(n, top, places) {
  if (places.has(n.id)) return places.get(n.id);
  const up = n.in !== undefined && byId.has(n.in) ?
    placeOf(byId.get(n.in), top, places) : top;
  let at = up;
  for (const part of ownName(n).split('/'))
    at = at.kids.get(part) || frame(part, at);
  /* A name may be a scope's too, or stand for several instructions. */
  for (let i = 2; at.node !== null; i++) {
    const name = at.name.replace(/ #\d+$/, '') + ' #' + i;
    at = at.up.kids.get(name) || frame(name, at.up);
  }
  at.node = n;
  places.set(n.id, at);
  return at;
}
function makeTree() {
  const top = frame('step', null), places = new Map();
  for (const n of nodes) placeOf(n, top, places).own += n.time_ns;
  frame('in no node', top).own = profile.in_no_node_ns;
  top.kids.get('in no node').gap = true;
  const order = [top];
  for (let i = 0; i < order.length; i++) order.push(...order[i].kids.values());
  for (const f of order.reverse()) {
    f.all += f.own;
    if (f.up) f.up.all += f.all;
  }
  return {top, places};
}
const tree = makeTree();

/* ---- The flame graph */

const colours = ['#e8a35c', '#e3c25a', '#dd8a68', '#eeb98a', '#d9a441',
  '#e59e9e', '#cbb26a', '#f0c9a0'];
function colourOf(f) {
  const text = f.node ? f.node.op : f.name;
  let h = 0;
  for (const c of text) h = (h * 31 + c.codePointAt(0)) % 9973;
  return colours[h % colours.length];
}
const flame = el('div', {id: 'flame'});
const ROW = 20;
function paint() {
  const from = zoomed || tree.top, list = [];
  const stack = [{f: from, x: 0}];
  let deepest = 0;
  for (let u = from.up; u; u = u.up) list.push({f: u, x: 0, w: 1});
  while (stack.length > 0) {
    const {f, x} = stack.pop(), w = from.all > 0 ? f.all / from.all : 0;
    if (w < 0.0008 && f !== from) continue;
    list.push({f, x, w});
    deepest = Math.max(deepest, f.depth);
    let at = x;
    const kids = [...f.kids.values()].sort((a, b) => b.all - a.all);
    for (const k of kids) {
      stack.push({f: k, x: at});
      at += from.all > 0 ? k.all / from.all : 0;
    }
  }
  flame.style.height = (deepest + 1) * ROW + 'px';
  flame.replaceChildren(...list.map(({f, x, w}) => el('div', {
    class: 'f' + (f.gap ? ' gap' : '') +
      (f.node && f.node.id === chosen ? ' on' : ''),
    title: f.name + '\n' + timeText(f.all) + ', ' +
      percent(f.all / (tree.top.all || 1)) + (f.node ? '\n' + f.node.op + ', ' +
      f.node.kernel + '\n' + f.node.reason : ''),
    style: 'left:' + 100 * x + '%;width:' + 100 * w + '%;top:' +
      f.depth * ROW + 'px' + (f.gap ? '' : ';background:' + colourOf(f)),
    onclick: () => {
      zoomed = zoomed === f ? null : f;
      if (f.node) choose(f.node.id);
      else paint();
    }}, f.name)));
  root.dataset.frames = list.length;
}

/* ---- The table */

const columns = [
  ['node', n => (n.within ? n.within + ' > ' : '') + ownName(n)],
  ['op', n => n.op],
  ['calls', n => String(n.calls), n => n.calls],
  ['time', n => timeText(n.time_ns), n => n.time_ns],
  ['share', n => percent(n.share), n => n.share],
  ['GFLOP/s', n => n.flops ? n.gflops.toPrecision(4) : '-', n => n.gflops],
  ['GB/s', n => n.bytes ? n.gb_per_s.toPrecision(4) : '-', n => n.gb_per_s],
  ['peak', n => n.peak_share === undefined ? '-' : percent(n.peak_share),
    n => n.peak_share === undefined ? -1 : n.peak_share],
  ['kernel', n => n.kernel], ['reason', n => n.reason],
];
const watchers = [];
function choose(id) {
  chosen = id;
  paint();
  for (const w of watchers) w();
}
function table() {
  const body = el('tbody'), head = el('tr'), state = {by: 3, down: true};
  const input = el('input', {type: 'search', placeholder:
    'filter: words of name, op, kernel, reason', oninput: () => fill()});
  const shown = el('span', {class: 'note'});
  columns.forEach((c, i) => head.append(el('th', {class: c[2] ? 'n' : '',
    onclick: () => {
      state.down = state.by === i ? !state.down : c[2] !== undefined;
      state.by = i;
      fill();
    }}, c[0])));
  function fill() {
    const words = input.value.toLowerCase().split(/\s+/).filter(x => x);
    const key = columns[state.by][2] || columns[state.by][1];
    const rows = nodes.filter(n => words.every(w => [columns[0][1](n), n.op,
      n.kernel, n.reason].join(' ').toLowerCase().includes(w)));
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (state.down ? -1 : 1) ||
        a.id - b.id;
    });
    shown.textContent = rows.length + ' of ' + nodes.length + ' rows' +
      (rows.length > 500 ? ', the first 500 are shown' : '');
    body.replaceChildren(...rows.slice(0, 500).map(n => el('tr', {
      'data-id': n.id, class: n.id === chosen ? 'on' : '',
      title: n.nodes ? n.nodes.join('\n') : '', onclick: () => choose(n.id)},
      ...columns.map((c, i) => el('td', {class: c[2] ? 'n' :
        i === 0 ? 'name' : ''}, c[1](n))))));
    root.dataset.rows = rows.length;
  }
  fill();
  watchers.push(() => body.querySelectorAll('tr').forEach(r =>
    r.classList.toggle('on', +r.dataset.id === chosen)));
  return el('section', {id: 'rows'}, el('h2', {}, 'Nodes'),
    el('div', {class: 'tools'}, input, shown), el('div', {class: 'wide'},
      el('table', {}, el('thead', {}, head), body)));
}

/* ---- The page */

function cards() {
  const card = (value, text) => el('div', {class: 'card'}, el('b', {}, value),
    el('span', {}, text));
  const step = profile.plain_step_ns || profile.step_ns;
  return el('div', {class: 'cards'},
    card(timeText(step), 'a step, the median of ' + profile.steps),
    card(percent(profile.in_no_node_ns / (profile.step_ns || 1)),
      'of it in no node: gaps and waits'),
    card(profile.peak.f32_gflops.toPrecision(4) + ' GFLOP/s',
      'the peak of one core, f32, ' + profile.peak.isa),
    card(String(profile.threads), 'threads; a node\'s time is its wall time'));
}
function build() {
  const theme = el('button', {onclick: () => root.classList.toggle('dark')},
    'light / dark');
  const all = el('button', {onclick: () => { zoomed = null; paint(); }},
    'whole step');
  root.classList.toggle('dark',
    matchMedia('(prefers-color-scheme: dark)').matches);
  page.append(el('header', {}, el('h1', {}, 'Profile'),
    el('span', {class: 'soft'}, held.title), el('span', {class: 'grow'}),
    theme), cards(),
  el('section', {}, el('h2', {}, 'Flame graph'), el('div', {class: 'tools'},
    el('span', {class: 'note'}, 'A box is a scope of names or a node, as wide ' +
      'as its time; nodes of a loop\'s body lie in the loop\'s. Click: zoom.'),
    all), flame), table());
  document.getElementById('text').open = false;
  paint();
  root.dataset.nodes = nodes.length;
  root.dataset.total = tree.top.all;
  root.dataset.ready = 1;
}
build();
