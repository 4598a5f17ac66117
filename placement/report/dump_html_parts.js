/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the page (see dump_html.js): each device's subgraph at its borders,
 * the bytes from each part to each other one, and the edges. */

const cutParts = plan.partition ? plan.partition.parts : [];
const cutEdges = plan.partition ? plan.partition.edges : [];
const MOST_PARTS = 16, MOST_EDGES = 40;
const classText = {
  tensor: 'a value that another part needs',
  pull: 'a variable\'s value, from its task',
  push: 'a value that updates a variable, to its task',
  control: 'no bytes: a node waits for another by after',
  collective: 'between ranks: to the next, or over tasks to the first and back',
};
const partName = p => short(cutParts[p].device);
const partDot = p => el('i', {class: 'dot', style: 'background:' +
  colourOf(deviceOf.get(cutParts[p].device))});
const sum = (rows, f) => rows.reduce((n, x) => n + f(x), 0);

/* A part in a line: its nodes and variables, and its edges. */
function partTable() {
  const ports = list => list.length === 0 ? '-' : count(list.length) + ', ' +
    bytesText(sum(list, x => x.bytes));
  const names = list => list.map(x => x.name + ' ' + x.type).join('\n');
  const body = el('tbody');
  for (const p of cutParts.slice(0, 2 * MOST_PARTS))
    body.append(el('tr', {},
      el('td', {title: p.device}, partDot(p.id), partName(p.id)),
      el('td', {class: 'n'}, count(p.nodes.length)),
      ...['variables', 'inputs', 'outputs'].map(key =>
        el('td', {class: 'n', title: names(p[key])}, ports(p[key]))),
      el('td', {class: 'n'}, bytesText(p.received_bytes)),
      el('td', {class: 'n'}, bytesText(p.sent_bytes))));
  return el('table', {}, el('thead', {}, el('tr', {}, el('th', {}, 'part'),
    ...['nodes', 'variables', 'inputs', 'outputs', 'receives a step',
      'sends a step'].map(x => el('th', {class: 'n'}, x)))), body);
}

/* Bytes from part to part; a click on a cell lists its edges. */
function linkTable(choose) {
  const shown = cutParts.slice(0, MOST_PARTS), links = new Map();
  for (const l of plan.partition.links) links.set(l.from + ':' + l.to, l);
  const most = Math.max(1, ...plan.partition.links.map(l => l.bytes));
  const cell = (from, to) => {
    const l = links.get(from + ':' + to);
    if (!l) return el('td', {class: 'n soft'}, from === to ? '' : '-');
    const share = 15 + 60 * l.bytes / most;
    return el('td', {class: 'n go', title: plural(l.edges, 'transfer') +
      (l.between_tasks ? ' between tasks' : ' within a task'),
    style: 'background:color-mix(in srgb, var(--cut) ' + share.toFixed(0) +
      '%, transparent)', onclick: () => choose(from, to)},
    bytesText(l.bytes) + ' / ' + count(l.edges));
  };
  const body = el('tbody');
  for (const p of shown)
    body.append(el('tr', {}, el('td', {}, partDot(p.id), partName(p.id)),
      ...shown.map(q => cell(p.id, q.id))));
  return el('table', {id: 'links'}, el('thead', {}, el('tr', {},
    el('th', {}, 'from \\ to'),
    ...shown.map(q => el('th', {class: 'n'}, partName(q.id))))), body);
}

/* ---- The edges, filtered by words and by a pair of parts */

const unitOfNode = new Map();
for (const p of cutParts) for (const n of p.nodes) unitOfNode.set(n.name, n.unit);

function edgeRow(e) {
  const end = (p, node, name, title, more) => el('td', {class: 'name', title:
    partName(p) + '\n' + title}, partDot(p), el('a', {href: '#', onclick: click => {
      click.preventDefault();
      select(unitOfNode.get(node));
    }}, name), el('span', {class: 'soft'}, more));
  return el('tr', {}, el('td', {title: classText[e.class]}, e.class),
    end(e.from, e.node, e.tensor || e.node + ' (token)', e.node,
      e.each_step ? '' : ' before the first step'),
    el('td', {}, e.type || ''),
    el('td', {class: 'n'}, e.class === 'control' ? '' : bytesText(e.bytes)),
    end(e.to, e.readers[0], e.readers[0], e.readers.join('\n'),
      e.shared ? ' and ' + (e.readers.length - 1) + ' more' : ''));
}
function edgeTable() {
  const body = el('tbody'), shown = el('span', {class: 'note'});
  const sorted = cutEdges.slice().sort((a, b) => b.bytes - a.bytes ||
    a.id - b.id);
  const input = el('input', {type: 'search', placeholder:
    'filter: words of class, tensor, part, reader', oninput: () => fill()});
  let pair = null;
  const all = el('button', {onclick: () => choose(null)}, 'all parts');
  function fill() {
    const words = input.value.toLowerCase().split(/\s+/).filter(x => x);
    const rows = sorted.filter(e =>
      (!pair || (e.from === pair[0] && e.to === pair[1])) &&
      words.every(w => [e.class, e.tensor || '', e.node, partName(e.from),
        partName(e.to), ...e.readers].join(' ').toLowerCase().includes(w)));
    shown.textContent = count(rows.length) + ' of ' + plural(cutEdges.length,
      'edge') + (pair ? ', ' + partName(pair[0]) + ' to ' + partName(pair[1]) :
      '') + (rows.length > MOST_EDGES ? ', the largest ' + MOST_EDGES +
      ' are shown' : '');
    body.replaceChildren(...rows.slice(0, MOST_EDGES).map(edgeRow));
    root.dataset.cut = rows.length;
  }
  function choose(from, to) {
    pair = from === null ? null : [from, to];
    fill();
  }
  fill();
  return {choose, table: [el('div', {class: 'tools'}, input, all, shown),
    el('div', {class: 'wide'}, el('table', {}, el('thead', {}, el('tr', {},
      ...['class', 'tensor', 'type', 'bytes', 'read by']
        .map((x, i) => el('th', {class: i === 3 ? 'n' : ''}, x)))), body))]};
}

function partsSection() {
  if (cutParts.length === 0) return null;
  root.dataset.parts = cutParts.length;
  const note = text => el('p', {class: 'note'}, text);
  if (cutEdges.length === 0) return el('section', {id: 'parts'},
    el('h2', {}, 'Parts'), note('Each device\'s subgraph. Nothing crosses.'),
    partTable());
  const edges = edgeTable();
  const seen = Object.keys(classText).filter(c =>
    cutEdges.some(e => e.class === c));
  return el('section', {id: 'parts'}, el('h2', {}, 'Parts'),
    note('Each device\'s subgraph, and what crosses to others: bytes and ' +
      'transfers in each step. Click a sum: its edges.'),
    el('div', {class: 'wide'}, partTable()),
    el('div', {class: 'wide'}, linkTable(edges.choose)),
    cutParts.length > MOST_PARTS ? note('The first ' + MOST_PARTS + ' of ' +
      count(cutParts.length) + ' parts.') : null,
    note(seen.map(c => c + ': ' + classText[c]).join('; ') + '.'),
    ...edges.table);
}
