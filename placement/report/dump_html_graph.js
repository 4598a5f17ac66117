/* SPDX-License-Identifier: Apache-2.0 */
/* Graph of the page (see dump_html.js). Units are collapsed by the scopes of
 * their names ("a/b/c"), and where there are too many beside each other by
 * device and depth; groups are opened one by one. Boxes stand in layers:
 * longest way, then barycentres (Sugiyama, Tagawa and Toda, IEEE Trans. SMC 11
 * (1981) 109-125). */

const FIRST_BOXES = 32, MOST_BOXES = 500, BESIDE = 64;

/* ---- The tree of groups: {name, units, parent, prefix or items, open}. */

function leaf(n, parent) {
  return {name: plan.nodes[n].name, units: [n], unit: n, parent};
}
function partition(group) {
  for (let prefix = group.prefix;;) {
    const parts = new Map();
    for (const n of group.units) {
      const name = plan.nodes[n].name, slash = name.indexOf('/', prefix.length);
      const key = slash < 0 || !name.startsWith(prefix) ? '#' + n :
        name.slice(0, slash + 1);
      if (!parts.has(key)) parts.set(key, []);
      parts.get(key).push(n);
    }
    const only = parts.size === 1 ? [...parts.keys()][0] : '#';
    if (only[0] === '#' || group.units.length === 1) {
      return [...parts].map(([key, units]) => units.length === 1 ?
        leaf(units[0], group) :
        {name: key.slice(0, -1), units, prefix: key, parent: group});
    }
    prefix = only;
  }
}
/* Too many beside each other: by device and depth. */
function bundle(group, items) {
  const depth = i => level[i.units[0]];
  const single = i => i.units.every(n => dev[n] === dev[i.units[0]]);
  const byDevice = D <= 8 && items.every(single);
  const rows = new Map();
  for (const i of items) {
    const key = byDevice ? dev[i.units[0]] : -1;
    if (!rows.has(key)) rows.set(key, []);
    rows.get(key).push(i);
  }
  const wanted = Math.max(4, Math.floor(32 / rows.size)), made = [];
  const sorted = items.map(depth).sort((a, b) => a - b);
  const bounds = [];
  for (let b = 1; b < wanted; b++)
    bounds.push(sorted[Math.floor(b * sorted.length / wanted)]);
  const steps = [...new Set(bounds)];
  for (const [key, list] of [...rows].sort((a, b) => a[0] - b[0])) {
    list.sort((a, b) => depth(a) - depth(b) || a.units[0] - b.units[0]);
    let run = [], band = 0;
    const flush = () => {
      if (run.length === 0) return;
      const from = depth(run[0]), to = depth(run[run.length - 1]);
      made.push({name: 'depth ' + from + (to > from ? '–' + to : ''),
        units: run.flatMap(i => i.units), items: run, parent: group, key});
      run = [];
    };
    const most = Math.max(1, Math.ceil(list.length / 24));
    for (const i of list) {
      const before = band;
      while (band < steps.length && depth(i) >= steps[band]) band++;
      if (band !== before || (steps.length < 2 && run.length >= most)) flush();
      run.push(i);
    }
    flush();
  }
  return made;
}
function kids(group) {
  if (!group.kids) {
    const items = group.items || partition(group);
    const made = items.length > BESIDE ? bundle(group, items) : items;
    group.kids = made.length > 1 ? made : items;
    for (const k of group.kids) k.parent = group;
  }
  return group.kids;
}
const isLeaf = g => g.unit !== undefined;
const tree = {name: '', units: [...Array(N).keys()], prefix: '', open: true};
function visible() {
  const out = [], stack = [tree];
  while (stack.length > 0) {
    const g = stack.pop();
    if (g.open && !isLeaf(g)) stack.push(...kids(g).slice().reverse());
    else out.push(g);
  }
  return out;
}
/* Opens the largest groups while there is room. */
function openUpTo(most) {
  for (;;) {
    const shown = visible();
    const next = shown.filter(g => !isLeaf(g)).sort(
      (a, b) => b.units.length - a.units.length).find(
      g => shown.length - 1 + kids(g).length <= most);
    if (!next) return;
    next.open = true;
  }
}

/* ---- Layers */

function collect(boxes) {
  const owner = new Int32Array(N), edges = new Map();
  boxes.forEach((b, i) => { for (const n of b.units) owner[n] = i; });
  for (let n = 0; n < N; n++)
    for (const t of plan.nodes[n].inputs || []) {
      const from = plan.tensors[t].node, a = owner[from], b = owner[n];
      if (a === b) continue;
      const key = a * boxes.length + b;
      let e = edges.get(key);
      if (!e) edges.set(key, e = {a, b, count: 0, cuts: 0, bytes: 0});
      e.count++;
      if (dev[from] !== dev[n]) {
        e.cuts++;
        e.bytes += plan.tensors[t].bytes;
      }
    }
  return [...edges.values()];
}
/* Longest way over the edges that go forward by mean depth. */
function layering(boxes, edges) {
  const mean = boxes.map(b => b.units.reduce((s, n) => s + level[n], 0) /
    b.units.length);
  const order = boxes.map((b, i) => i).sort((a, b) => mean[a] - mean[b] ||
    a - b);
  const place = new Int32Array(boxes.length);
  order.forEach((b, i) => { place[b] = i; });
  const layer = new Int32Array(boxes.length);
  const inward = boxes.map(() => []);
  for (const e of edges) {
    e.back = place[e.a] > place[e.b];
    if (!e.back) inward[e.b].push(e.a);
  }
  for (const b of order)
    for (const a of inward[b]) layer[b] = Math.max(layer[b], layer[a] + 1);
  /* Nodes without a predecessor stand close to their readers. */
  for (let i = order.length - 1; i >= 0; i--) {
    const b = order[i], out = edges.filter(e => e.a === b && !e.back);
    if (inward[b].length === 0 && out.length > 0)
      layer[b] = Math.min(...out.map(e => layer[e.b])) - 1;
  }
  return layer;
}
function layout(boxes) {
  const edges = collect(boxes), layer = layering(boxes, edges), items = [];
  const rows = [];
  const put = (l, item) => {
    (rows[l] = rows[l] || []).push(item);
    item.up = [];
    item.down = [];
    items.push(item);
    return item;
  };
  for (let l = 0; l <= Math.max(0, ...layer); l++) rows[l] = [];
  const at = boxes.map((box, i) => put(layer[i], {box, w: 150}));
  for (const e of edges) {
    const [a, b] = layer[e.a] <= layer[e.b] ? [e.a, e.b] : [e.b, e.a];
    e.way = [at[a]];
    for (let l = layer[a] + 1; l < layer[b] && items.length < 6000; l++)
      e.way.push(put(l, {w: 10}));
    e.way.push(at[b]);
    for (let i = 0; i + 1 < e.way.length; i++) {
      e.way[i].down.push(e.way[i + 1]);
      e.way[i + 1].up.push(e.way[i]);
    }
    if (a !== e.a) e.way.reverse();
  }
  const settle = row => row.forEach((n, i) => { n.order = i; });
  rows.forEach(settle);
  const mean = (list, n) => list.length === 0 ? n.order :
    list.reduce((s, m) => s + m.order, 0) / list.length;
  for (let pass = 0; pass < 12; pass++) {
    const list = pass % 2 ? rows.slice().reverse() : rows;
    for (const row of list) {
      const side = pass % 2 ? 'down' : 'up';
      row.forEach(n => { n.mean = mean(n[side], n); });
      row.sort((a, b) => a.mean - b.mean || a.order - b.order);
      settle(row);
    }
  }
  straighten(rows);
  return {items, edges, rows};
}
/* Each towards the middle of its neighbours, in order and apart. */
function straighten(rows) {
  const GAP = 16;
  for (const row of rows) {
    let x = 0;
    for (const n of row) { n.x = x + n.w / 2; x += n.w + GAP; }
    for (const n of row) n.x -= x / 2;
  }
  for (let pass = 0; pass < 16; pass++)
    for (const row of pass % 2 ? rows.slice().reverse() : rows) {
      const want = row.map(n => {
        const near = pass < 12 ? (pass % 2 ? n.down : n.up) :
          [...n.up, ...n.down];
        return near.length === 0 ? n.x :
          near.reduce((s, m) => s + m.x, 0) / near.length;
      });
      const right = want.slice(), left = want.slice();
      for (let i = 1; i < row.length; i++)
        right[i] = Math.max(right[i], right[i - 1] +
          (row[i].w + row[i - 1].w) / 2 + GAP);
      for (let i = row.length - 2; i >= 0; i--)
        left[i] = Math.min(left[i], left[i + 1] -
          (row[i].w + row[i + 1].w) / 2 - GAP);
      row.forEach((n, i) => { n.x = (right[i] + left[i]) / 2; });
    }
}

/* ---- Drawing */

const BOX = 30, ROW = 58;

function drawBox(g, n, on) {
  const x = n.x - n.w / 2, y = n.y - BOX / 2, box = n.box;
  const share = new Map();
  for (const u of box.units) share.set(dev[u], 1 + (share.get(dev[u]) || 0));
  g.fillStyle = css('--panel');
  g.fillRect(x, y, n.w, BOX);
  let left = x;
  for (const [d, c] of [...share].sort((a, b) => a[0] - b[0])) {
    const wide = n.w * c / box.units.length;
    g.fillStyle = colourOf(d);
    g.globalAlpha = 0.22;
    g.fillRect(left, y, wide, BOX);
    g.globalAlpha = 1;
    g.fillRect(left, y + BOX - 5, wide, 5);
    left += wide;
  }
  g.strokeStyle = on ? css('--ink') : css('--soft');
  g.lineWidth = on ? 2.5 : 0.8;
  g.strokeRect(x, y, n.w, BOX);
  g.lineWidth = 1;
  g.fillStyle = css('--ink');
  const more = isLeaf(box) ? '' : '+' + count(box.units.length);
  const width = more ? g.measureText(more).width + 6 : 0;
  const slash = box.name.lastIndexOf('/', box.name.length - 2);
  const name = g.measureText(box.name).width > n.w - 12 - width && slash > 0 ?
    '…' + box.name.slice(slash) : box.name;
  g.fillText(cut(g, name, n.w - 12 - width), x + 6, n.y - 2);
  if (more) {
    g.fillStyle = css('--soft');
    g.fillText(more, x + n.w - width, n.y - 2);
  }
}
function drawEdge(g, e) {
  g.strokeStyle = e.cuts > 0 ? css('--cut') : css('--soft');
  g.globalAlpha = e.cuts > 0 ? 0.9 : 0.55;
  g.lineWidth = e.cuts > 0 ? 1.6 + Math.min(3, Math.log10(1 + e.bytes / 1e4)) :
    0.8;
  const way = e.way, up = way[0].y > way[way.length - 1].y;
  const out = up ? -BOX / 2 : BOX / 2;
  g.beginPath();
  g.moveTo(way[0].x, way[0].y + out);
  for (let i = 1; i < way.length; i++) {
    const a = way[i - 1], b = way[i];
    const y0 = i === 1 ? a.y + out : a.y, y1 = i === way.length - 1 ?
      b.y - out : b.y;
    g.bezierCurveTo(a.x, (y0 + y1) / 2, b.x, (y0 + y1) / 2, b.x, y1);
  }
  g.stroke();
  const last = way[way.length - 1];
  g.fillStyle = g.strokeStyle;
  g.beginPath();
  g.moveTo(last.x, last.y - out);
  g.lineTo(last.x - 4, last.y - out * 1.5);
  g.lineTo(last.x + 4, last.y - out * 1.5);
  g.fill();
  g.globalAlpha = 1;
  g.lineWidth = 1;
}

function boxTip(b) {
  const share = new Map();
  let ns = 0;
  for (const n of b.units) {
    share.set(dev[n], 1 + (share.get(dev[n]) || 0));
    ns += end[n] - start[n];
  }
  return b.name + '\n' + plural(b.units.length, 'unit') + ', ' + timeText(ns) +
    ' of work\n' + [...share].sort((x, y) => y[1] - x[1]).slice(0, 8)
    .map(([d, c]) => deviceText(d) + ': ' + count(c)).join('\n') +
    '\nclick: open';
}
function graph() {
  const canvas = el('canvas', {id: 'graph'});
  const camera = {x: 0, y: 0, scale: 1}, text = el('span', {class: 'note'});
  const state = {items: [], edges: [], rows: [], height: 420, fit: true};
  function rebuild() {
    const boxes = visible();
    Object.assign(state, layout(boxes), {fit: true});
    state.rows.forEach((row, l) => row.forEach(n => { n.y = l * ROW + ROW; }));
    const cuts = state.edges.filter(e => e.cuts > 0).length;
    text.textContent = plural(boxes.length, 'box').replace('boxs', 'boxes') +
      ' for ' + plural(N, 'unit') + '; ' + count(cuts) + ' of ' +
      plural(state.edges.length, 'line') + ' cross devices';
    root.dataset.boxes = boxes.length;
    root.dataset.cuts = cuts;
    paint();
  }
  function fit(width) {
    let left = Infinity, right = -Infinity;
    for (const n of state.items) {
      left = Math.min(left, n.x - n.w / 2);
      right = Math.max(right, n.x + n.w / 2);
    }
    const wide = right - left + 24;
    const tall = (state.rows.length + 1) * ROW;
    camera.scale = Math.max(0.05, Math.min(1, width / wide));
    state.height = Math.max(240, Math.min(820, tall * camera.scale));
    if (tall * camera.scale > 820 * 1.6)
      camera.scale = Math.max(820 * 1.6 / tall, Math.min(0.6, camera.scale));
    camera.x = (width - camera.scale * (right + left)) / 2;
    camera.y = 0;
    state.fit = false;
  }
  function paint() {
    if (state.items.length === 0) return;
    if (state.fit) fit(canvas.clientWidth || 900);
    const s = surface(canvas, state.height), g = s.g, ratio =
      devicePixelRatio || 1;
    g.setTransform(ratio * camera.scale, 0, 0, ratio * camera.scale,
      ratio * camera.x, ratio * camera.y);
    for (const e of state.edges) if (e.cuts === 0) drawEdge(g, e);
    for (const e of state.edges) if (e.cuts > 0) drawEdge(g, e);
    for (const n of state.items)
      if (n.box) drawBox(g, n, selected >= 0 && n.box.units.includes(selected));
  }
  repaint.push(paint);
  function hit(e) {
    const r = canvas.getBoundingClientRect();
    const x = (e.clientX - r.left - camera.x) / camera.scale;
    const y = (e.clientY - r.top - camera.y) / camera.scale;
    const n = state.items.find(m => m.box && Math.abs(m.x - x) <= m.w / 2 &&
      Math.abs(m.y - y) <= BOX / 2);
    return n && n.box;
  }
  let down = null;
  canvas.addEventListener('pointerdown', e => {
    down = {x: e.clientX, y: e.clientY, moved: false};
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener('pointermove', e => {
    if (!down) {
      const b = hit(e);
      return showTip(e, !b ? '' : isLeaf(b) ? unitTip(b.unit) : boxTip(b));
    }
    const dx = e.clientX - down.x, dy = e.clientY - down.y;
    if (Math.abs(dx) + Math.abs(dy) > 3) down.moved = true;
    if (!down.moved) return;
    camera.x += dx;
    camera.y += dy;
    Object.assign(down, {x: e.clientX, y: e.clientY});
    paint();
  });
  canvas.addEventListener('pointerup', e => {
    const b = down && !down.moved ? hit(e) : null;
    down = null;
    if (b && isLeaf(b)) select(b.unit);
    else if (b && visible().length + kids(b).length <= MOST_BOXES) {
      showTip(e, '');
      b.open = true;
      rebuild();
    }
  });
  canvas.addEventListener('pointerleave', e => showTip(e, ''));
  canvas.addEventListener('wheel', e => {
    if (!e.ctrlKey && !e.shiftKey) return; /* the page scrolls */
    e.preventDefault();
    scaleBy(e.deltaY > 0 ? 0.85 : 1.18, e);
  }, {passive: false});
  function scaleBy(f, e) {
    const r = canvas.getBoundingClientRect();
    const x = e ? e.clientX - r.left : r.width / 2;
    const y = e ? e.clientY - r.top : 0;
    camera.x = x - (x - camera.x) * f;
    camera.y = y - (y - camera.y) * f;
    camera.scale *= f;
    paint();
  }
  function close() {
    const fold = g => {
      g.open = false;
      for (const k of g.kids || []) fold(k);
    };
    fold(tree);
    tree.open = true;
    openUpTo(FIRST_BOXES);
    rebuild();
  }
  openUpTo(FIRST_BOXES);
  const button = (name, f) => el('button', {onclick: f}, name);
  return {canvas, rebuild, tools: el('div', {class: 'tools'}, text,
    button('+', () => scaleBy(1.25)), button('−', () => scaleBy(0.8)),
    button('fit', () => { state.fit = true; paint(); }),
    button('open more', () => {
      openUpTo(Math.min(MOST_BOXES, 2 * visible().length + 8));
      rebuild();
    }), button('close groups', close))};
}

/* ---- The page */

function key() {
  const shown = used.slice(0, 12).map(i => el('span', {},
    el('i', {class: 'dot', style: 'border:0;height:11px;width:11px;' +
      'vertical-align:-1px;background:' + colourOf(i)}), deviceText(i)));
  const line = (kind, text) => el('span', {}, el('i', {class: kind}), text);
  return {
    time: el('div', {class: 'key'}, ...shown, line('', 'copy on a link'),
      line('chain', 'the chain that makes the step'),
      line('dash', 'lower bound')),
    graph: el('div', {class: 'key'},
      ...shown.map(x => x.cloneNode(true)), line('', 'crosses devices'),
      line('plain', 'stays')),
  };
}
/* Where one may start to look: the longest unit on the chain. */
function longest() {
  let best = -1;
  for (const n of chain.nodes)
    if (best < 0 || end[n] - start[n] > end[best] - start[best]) best = n;
  return best;
}
function build() {
  const box = el('aside'), g = graph(), keys = key();
  const theme = el('button', {onclick: () => {
    root.classList.toggle('dark');
    paintAll();
  }}, 'light / dark');
  root.classList.toggle('dark',
    matchMedia('(prefers-color-scheme: dark)').matches);
  page.append(el('header', {}, el('h1', {}, 'Placement'),
    el('span', {class: 'soft'}, plural(members, 'node') + ' in ' +
      plural(N, 'unit') + ' on ' + plural(D, 'device') + ' by ' +
      plan.placer + ', plan ' + plan.plan.slice(0, 8)),
    el('span', {class: 'grow'}), theme), cards(), ...fallbacks(),
  el('div', {class: 'pair'}, deviceTable(), measures()),
  el('div', {class: 'split'}, el('div', {},
    el('section', {}, el('h2', {}, 'Timeline'),
      el('p', {class: 'note'}, 'A lane for each device and each link that ' +
        'carries copies. Wheel: zoom, drag: move, double click: all, click: ' +
        'why a unit is there.'), keys.time, timeline()),
    el('section', {}, el('h2', {}, 'Memory'),
      el('p', {class: 'note'}, 'Bytes held on each device over the same ' +
        'time' + (plan.devices.some(d => d.memory_bytes) ?
        '; dashed red: the cap, where it is near.' : '.')), memory()),
    el('section', {}, el('h2', {}, 'Graph'), keys.graph, g.tools, g.canvas),
    partsSection(), unitTable()), box), tip);
  watchers.push(n => { explain(box, n); paintAll(); });
  document.getElementById('text').open = false;
  g.rebuild();
  const wanted = /^#unit=(\d+)$/.exec(location.hash);
  select(wanted && +wanted[1] < N ? +wanted[1] : longest());
  addEventListener('resize', paintAll);
  root.dataset.units = N;
  root.dataset.chain = chain.nodes.size;
  root.dataset.ready = 1;
}
build();
