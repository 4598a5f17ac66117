/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `weir place --format html`: this file reads the plan, and makes
 * the head, the table and the explanation; dump_html_time.js the timeline and
 * the memory, dump_html_parts.js the parts, dump_html_graph.js the graph and
 * the page. All are one program. Names come from a graph's file: they reach the
 * page as text only (el, textContent, fillText), never as markup. */
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
  return ns < 1e4 ? ns + ' ns' : ns < 1e7 ? (ns / 1e3).toFixed(2) + ' us' :
    ns < 1e10 ? (ns / 1e6).toFixed(2) + ' ms' : (ns / 1e9).toFixed(2) + ' s';
}
function bytesText(b) {
  return b < 1e4 ? b + ' B' : b < 1e7 ? (b / 1e3).toFixed(1) + ' kB' :
    b < 1e10 ? (b / 1e6).toFixed(1) + ' MB' : (b / 1e9).toFixed(1) + ' GB';
}
const count = n => n.toLocaleString('en-US');
const plural = (n, word) => count(n) + ' ' + word + (n === 1 ? '' : 's');
function css(name) {
  return getComputedStyle(root).getPropertyValue(name).trim();
}

/* ---- The plan, in arrays */

const plan = JSON.parse(document.getElementById('plan').textContent);
const N = plan.nodes.length, T = plan.tensors.length, D = plan.devices.length;
const deviceOf = new Map(plan.devices.map((d, i) => [d.name, i]));
const dev = new Int32Array(N), start = new Float64Array(N);
const end = new Float64Array(N), level = new Int32Array(N);
const uses = new Array(T);
for (let t = 0; t < T; t++) uses[t] = [];
plan.nodes.forEach((n, i) => {
  dev[i] = deviceOf.get(n.device);
  start[i] = n.start_ns;
  end[i] = n.end_ns;
  for (const t of n.inputs || []) {
    uses[t].push(i);
    level[i] = Math.max(level[i], level[plan.tensors[t].node] + 1);
  }
});
const copies = plan.edges.map((c, i) => ({
  id: i, tensor: c.tensor, node: c.node, from: deviceOf.get(c.from),
  to: deviceOf.get(c.to), bytes: c.bytes, start: c.start_ns, end: c.end_ns,
  onLink: c.on_link_from_ns ?? c.start_ns,
  linkFree: (c.on_link_from_ns ?? c.start_ns) + c.link_ns, sent: c.start_ns + c.send_ns}));
const span = Math.max(plan.makespan_ns, 1);
/* Of many devices those that have something to do. */
const used = plan.devices.map((d, i) => i).filter(
  i => D <= 16 || plan.devices[i].peak_bytes > 0 || dev.includes(i));

/* "/job:ps/task:0/device:CPU:0" as "ps:0 CPU:0", "ps:0" where no task has two
 * devices, or "CPU:0" where there is one task. */
const parts = name => /^\/job:([^/]*)\/task:(\d+)\/device:(.*)$/.exec(name);
const tasks = new Set(plan.devices.map(d => (parts(d.name) || []).slice(1, 3)
  .join(':'))).size;
function short(name) {
  const m = parts(name);
  return !m ? name : tasks === 1 ? m[3] :
    m[1] + ':' + m[2] + (tasks === D ? '' : ' ' + m[3]);
}
const deviceText = d => short(plan.devices[d].name);
const palette = ['#3874cb', '#c26a00', '#2a8a57', '#8f51b8', '#14868c',
  '#8a7a12', '#9c5a3c', '#5b6b7f'];
const colourOf = d => d < palette.length ? palette[d] :
  'hsl(' + (d * 137.5 % 300 + 30).toFixed(0) + ' 45% 45%)';

/* ---- The chain that makes the step: from the end back, the cause of each wait:
 * its tensor, a copy, or a device or link that was busy; a device sends too. */
function findChain() {
  const ended = new Map(), sent = new Map();
  const copied = new Map(), onLink = new Map();
  for (let n = 0; n < N; n++)
    if (start[n] < end[n]) ended.set(dev[n] + ':' + end[n], n);
  for (const c of copies) {
    copied.set(c.tensor + ':' + c.to, c);
    if (c.onLink < c.linkFree)
      onLink.set(c.from + ':' + c.to + ':' + c.linkFree, c);
    if (c.start < c.sent) sent.set(c.from + ':' + c.sent, c);
  }
  const nodes = new Set(), moved = new Set();
  let node = -1, copy = null;
  for (let n = 0; n < N; n++) if (end[n] === plan.makespan_ns) node = n;
  while ((node >= 0 && !nodes.has(node)) || (copy && !moved.has(copy.id))) {
    if (copy) {
      moved.add(copy.id);
      const ready = end[copy.node] === copy.start && copy.onLink === copy.start;
      const now = copy.from + ':' + copy.start;
      const busy = ended.get(now), other =
        onLink.get(copy.from + ':' + copy.to + ':' + copy.onLink) ||
        (busy === undefined ? sent.get(now) : null) || null;
      node = ready ? copy.node : other || busy === undefined ? -1 : busy;
      copy = ready ? null : other;
      continue;
    }
    nodes.add(node);
    let next = -1;
    for (const t of plan.nodes[node].inputs || []) {
      const from = plan.tensors[t].node;
      const c = copied.get(t + ':' + dev[node]);
      if (dev[from] === dev[node] && end[from] === start[node]) next = from;
      else if (dev[from] !== dev[node] && c && c.end === start[node]) copy = c;
      if (next >= 0 || copy) break;
    }
    if (!copy && next < 0) {
      const now = dev[node] + ':' + start[node], busy = ended.get(now);
      next = busy === undefined ? -1 : busy;
      if (next < 0) copy = sent.get(now) || null;
    }
    node = next;
  }
  return {nodes, copies: moved};
}
const chain = findChain();

/* ---- Head: figures, how good it is, devices */

const page = document.getElementById('page'), tip = el('div', {id: 'tip'});
const members = plan.nodes.reduce(
  (n, x) => n + (x.members ? x.members.length : 1), 0);

function card(value, what, title) {
  return el('div', {class: 'card', title: title || ''}, el('b', {}, value),
    el('span', {}, what));
}
function cards() {
  const bytes = copies.reduce((b, c) => b + c.bytes, 0);
  const sources = {measured: 0, est: 0, given: 0};
  let relaxed = 0;
  for (const n of plan.nodes) {
    sources[n.cost_source]++;
    relaxed += n.relaxed ? 1 : 0;
  }
  const costs = [[sources.measured, 'measured'], [sources.est, 'estimated'],
    [sources.given, 'given']].filter(x => x[0] > 0)
    .map(x => count(x[0]) + ' ' + x[1]).join(', ');
  return el('div', {class: 'cards'},
    card(timeText(plan.makespan_ns), 'predicted step'),
    card((100 * plan.gap).toFixed(1) + ' %',
      'gap: what is above the lower bound, ' + timeText(plan.lower_bound_ns)),
    card(plural(copies.length, 'copy').replace('copys', 'copies') + ', ' +
      bytesText(bytes), 'of tensors between devices'),
    card(plural(N, 'unit'), 'costs: ' + costs + '; requests dropped: ' +
      relaxed));
}
function fallbacks() {
  const f = plan.fallbacks, lines = [];
  if (plan.assumed_kernels) lines.push('Kernels are assumed on ' +
    plan.assumed_kernels.join(', ') + ': this plan cannot be run.');
  for (const l of f ? f.no_kernel : [])
    lines.push(count(l.units) + ' of ' + count(l.of) + ' units that take time have no ' +
      l.kind + ' kernel: ' + Object.keys(l.ops)
        .map(op => op + ' ' + count(l.ops[op])).join(', ') + '.');
  if (f && f.preferred > 0) lines.push(plural(f.preferred, 'unit') +
    ' fell back: no kernel on a device that the rule prefers.');
  return lines.map(t => el('p', {class: 'soft'}, t));
}
function measures() {
  const b = plan.bounds, s = plan.search;
  const rows = [
    ['first answer', s.first_ns, '--accent', 'the best of several lists'],
    ['this plan', plan.makespan_ns, '--accent',
      'after ' + count(s.moves) + ' moves of local search'],
    ['critical path', b.critical_path_ns, '--good',
      'the longest way, each unit on its fastest device'],
    ['area', b.area_ns, '--good', 'all work spread over all devices'],
    ['window', b.window_ns, '--good',
      'work between what comes before and after it'],
    ['energy', b.energy_ns, '--good', 'lengths that cannot be refuted'],
  ].filter(r => r[1] > 0);
  const most = Math.max(...rows.map(r => r[1]), 1);
  const box = el('div', {class: 'measure'});
  for (const [name, ns, colour, why] of rows) {
    box.append(el('span', {title: why}, name),
      el('div', {class: 'bar', title: why}, el('i', {style:
        'width:' + 100 * ns / most + '%;background:var(' + colour + ')'})),
      el('span', {class: 'v'}, timeText(ns)));
  }
  return el('section', {}, el('h2', {}, 'How good is it?'),
    el('p', {class: 'note'}, 'Blue: steps that were found, ' +
      count(s.moves) + ' moves of search between them. Green: what no plan ' +
      'can be shorter than. Best bound: ' + plan.lower_bound + '.'), box);
}
function deviceTable() {
  const busy = new Float64Array(D), units = new Int32Array(D);
  for (let n = 0; n < N; n++) {
    busy[dev[n]] += end[n] - start[n];
    units[dev[n]]++;
  }
  const body = el('tbody');
  used.slice(0, 32).forEach(i => {
    const d = plan.devices[i];
    const share = 100 * busy[i] / span, cap = d.memory_bytes;
    body.append(el('tr', {},
      el('td', {title: d.name}, el('i', {class: 'dot', style: 'background:' +
        colourOf(i)}), deviceText(i)),
      el('td', {class: 'n'}, count(units[i])),
      el('td', {}, el('div', {class: 'bar'}, el('i', {style: 'width:' +
        share + '%;background:' + colourOf(i)}))),
      el('td', {class: 'n'}, share.toFixed(0) + ' %'),
      el('td', {class: 'n'}, bytesText(d.peak_bytes) +
        (cap ? ' of ' + bytesText(cap) : ''))));
  });
  return el('section', {}, el('h2', {}, 'Devices'),
    el('table', {}, el('thead', {}, el('tr', {}, el('th', {}, 'device'),
      el('th', {class: 'n'}, 'units'), el('th', {}, 'busy'), el('th', {}, ''),
      el('th', {class: 'n'}, 'peak memory'))), body),
    D > used.length ? el('p', {class: 'note'}, (D - used.length) +
      ' devices have nothing to do') : null,
    used.length > 32 ? el('p', {class: 'note'}, 'and ' + (used.length - 32) +
      ' more') : null);
}

/* ---- The selection, for all parts of the page */

const watchers = [];
let selected = -1;
function select(n) {
  selected = n;
  for (const w of watchers) w(n);
}
function showTip(e, text) {
  tip.style.display = text ? 'block' : 'none';
  if (!text) return;
  tip.textContent = text;
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = Math.min(e.clientX + 14, innerWidth - w - 8) + 'px';
  tip.style.top = (e.clientY + 18 + h > innerHeight ? e.clientY - h - 10 :
    e.clientY + 18) + 'px';
}
const sourceText = {est: 'estimated', measured: 'measured', given: 'given'};
function unitTip(n) {
  const u = plan.nodes[n];
  return u.name + ' (' + u.op + ')\non ' + deviceText(dev[n]) + '\n' +
    timeText(start[n]) + ' to ' + timeText(end[n]) + ', takes ' +
    timeText(end[n] - start[n]) + ' (' + sourceText[u.cost_source] + ')' +
    '\nreason: ' + u.reason + (chain.nodes.has(n) ? '\non the chain' : '');
}
function copyTip(c) {
  return plan.nodes[c.node].name + ', ' + bytesText(c.bytes) + '\n' +
    deviceText(c.from) + ' to ' + deviceText(c.to) + '\n' + timeText(c.start) +
    ' to ' + timeText(c.end) + ', takes ' + timeText(c.end - c.start) +
    (chain.copies.has(c.id) ? '\non the chain' : '');
}

/* ---- Explanation of the unit that was clicked */

const reasons = {
  eft: 'When its turn came it would finish first on this device.',
  only: 'No other device may have it: a request says so, or only this one ' +
    'has a kernel.',
  colocated: 'It shares a device with another unit.',
  search: 'Local search moved it here, and the step became shorter.',
  memory: 'Where it would finish sooner there was no room.',
  replay: 'The plan that was given says so.',
  home: 'It lives here in all programs: the plan of the step, or of all ' +
    'outputs, decided that.',
};
function link(n) {
  return el('a', {href: '#', onclick: e => {
    e.preventDefault();
    select(n);
  }}, plan.nodes[n].name);
}
function requestLines(u) {
  const lines = [];
  if (u.asked_line) lines.push('The node itself asks for a device, line ' +
    u.asked_line + '.');
  if (u.rule !== undefined) {
    const r = plan.rules[u.rule];
    lines.push('Rule ' + (u.rule + 1) + ' of placement, line ' + r.line + ': ' +
      Object.keys(r).filter(k => k !== 'line')
        .map(k => k + ' ' + r[k]).join(', ') + '.');
  }
  if (u.relaxed) lines.push('The request was dropped: no device meets it.');
  if (u.fallback) lines.push(
    'It fell back: a device that its rule prefers has no kernel for it.');
  return lines;
}
function alternatives(u, n) {
  if (!u.alternatives) return el('p', {class: 'soft'},
    'Not in this dump, which is too large: weir place --explain tells.');
  const body = el('tbody');
  const rows = u.alternatives.slice().sort(
    (a, b) => (a.step_ns ?? Infinity) - (b.step_ns ?? Infinity));
  const row = (name, finish, step) => el('tr', {}, el('td', {}, name),
    el('td', {class: 'n'}, finish), el('td', {class: 'n'}, step));
  body.append(row(deviceText(dev[n]) + ' (chosen)', timeText(end[n]),
    timeText(plan.makespan_ns)));
  for (const a of rows.slice(0, 12)) {
    const more = a.step_ns - plan.makespan_ns;
    body.append(a.refused ? row(short(a.device), a.refused, '') :
      row(short(a.device), timeText(a.finish_ns), more === 0 ? 'the same' :
        (more < 0 ? '-' : '+') + timeText(Math.abs(more))));
  }
  return el('table', {}, el('thead', {}, el('tr', {}, el('th', {}, 'device'),
    el('th', {class: 'n'}, 'it ends'), el('th', {class: 'n'}, 'step then'))),
    body);
}
function tensorList(title, rows) {
  if (rows.length === 0) return [];
  const list = rows.slice(0, 12).map(r => el('p', {},
    el('i', {class: 'dot', style: 'background:' + colourOf(dev[r.node])}),
    link(r.node), el('span', {class: 'soft'}, ' ' + bytesText(r.bytes) +
      (dev[r.node] !== r.here ? ', copied' : ''))));
  if (rows.length > 12) list.push(el('p', {class: 'soft'},
    'and ' + (rows.length - 12) + ' more'));
  return [el('h3', {}, title), ...list];
}
function explain(box, n) {
  box.replaceChildren(el('h2', {}, 'Why is it there?'));
  if (n < 0) {
    box.append(el('p', {class: 'note'}, 'Click a unit in the timeline, the ' +
      'graph or the table.'));
    return;
  }
  const u = plan.nodes[n];
  const inputs = (u.inputs || []).map(t => ({node: plan.tensors[t].node,
    bytes: plan.tensors[t].bytes, here: dev[n]}));
  const outputs = (tensorsOf[n] || []).flatMap(t => uses[t].map(m => ({node: m,
    bytes: plan.tensors[t].bytes, here: dev[n]})));
  box.append(el('p', {}, el('b', {}, u.name), ' ',
    el('span', {class: 'soft'}, u.op)),
    el('p', {}, el('i', {class: 'dot', style: 'background:' +
      colourOf(dev[n])}), u.device),
    el('p', {class: 'soft'}, timeText(start[n]) + ' to ' + timeText(end[n]) +
      ', takes ' + timeText(end[n] - start[n]) + ' (' +
      sourceText[u.cost_source] + ')'),
    el('h3', {}, 'Reason: ' + u.reason), el('p', {}, reasons[u.reason] || ''),
    ...requestLines(u).map(x => el('p', {}, x)));
  if (u.with !== undefined) box.append(el('p', {}, 'Together with ',
    link(u.with), '.'));
  box.append(el('h3', {}, 'On another device'), alternatives(u, n));
  if (u.members) box.append(el('h3', {}, plural(u.members.length, 'node') +
    ' in one unit'), el('p', {class: 'soft'}, u.members.slice(0, 30).join(', ') +
    (u.members.length > 30 ? ' ...' : '')));
  box.append(...tensorList('Takes from', inputs),
    ...tensorList('Gives to', outputs));
}
const tensorsOf = {};
plan.tensors.forEach((t, i) =>
  (tensorsOf[t.node] = tensorsOf[t.node] || []).push(i));

/* ---- Table of units */

const columns = [
  ['unit', u => u.name], ['op', u => u.op], ['device', u => short(u.device)],
  ['start', u => timeText(u.start_ns), u => u.start_ns],
  ['takes', u => timeText(u.end_ns - u.start_ns), u => u.end_ns - u.start_ns],
  ['cost', u => sourceText[u.cost_source]], ['reason', u => u.reason],
];
function unitTable() {
  const body = el('tbody'), head = el('tr'), state = {by: 3, down: false};
  const input = el('input', {type: 'search', placeholder:
    'filter: words of name, op, device, reason', oninput: () => fill()});
  const shown = el('span', {class: 'note'});
  columns.forEach((c, i) => head.append(el('th', {class: c[2] ? 'n' : '',
    onclick: () => {
      state.down = state.by === i && !state.down;
      state.by = i;
      fill();
    }}, c[0])));
  function fill() {
    const words = input.value.toLowerCase().split(/\s+/).filter(x => x);
    const key = columns[state.by][2] || columns[state.by][1];
    const rows = plan.nodes.filter(u => words.every(w =>
      (u.name + ' ' + u.op + ' ' + u.device + ' ' + short(u.device) + ' ' +
       u.reason).toLowerCase().includes(w)));
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      return (x < y ? -1 : x > y ? 1 : a.id - b.id) * (state.down ? -1 : 1);
    });
    shown.textContent = count(rows.length) + ' of ' + plural(N, 'unit') +
      (rows.length > 100 ? ', the first 100 are shown' : '');
    body.replaceChildren(...rows.slice(0, 100).map(u => el('tr', {
      'data-id': u.id, class: u.id === selected ? 'on' : '',
      onclick: () => select(u.id)},
      ...columns.map((c, i) => el('td', {class: c[2] ? 'n' : ''}, i === 2 ?
        el('i', {class: 'dot', style: 'background:' +
          colourOf(dev[u.id])}) : null, c[1](u))))));
    root.dataset.rows = rows.length;
  }
  fill();
  watchers.push(n => body.querySelectorAll('tr').forEach(r =>
    r.classList.toggle('on', +r.dataset.id === n)));
  return el('section', {id: 'units'}, el('h2', {}, 'Units'),
    el('div', {class: 'tools'}, input, shown),
    el('table', {}, el('thead', {}, head), body));
}
