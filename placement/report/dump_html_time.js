/* SPDX-License-Identifier: Apache-2.0 */
/* Timeline and memory of the page (see dump_html.js): lanes of blocks over one
 * axis of time that both share. Spans narrower than a pixel are added up, and
 * the column is as dense as the lane was busy. */

const GUTTER = 176, AXIS = 22;
const view = {from: 0, to: span};
const repaint = [];
const paintAll = () => repaint.forEach(f => f());

/* A canvas of |height| pixels that is drawn sharp on every screen. */
function surface(canvas, height) {
  const scale = devicePixelRatio || 1, width = canvas.clientWidth || 900;
  canvas.style.height = height + 'px';
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const g = canvas.getContext('2d');
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = '12px system-ui, "Liberation Sans", sans-serif';
  g.textBaseline = 'middle';
  return {g, width, height};
}
const xOf = (s, ns) => GUTTER + (ns - view.from) * (s.width - GUTTER - 8) /
  (view.to - view.from);
const nsAt = (width, x) => view.from + (x - GUTTER) * (view.to - view.from) /
  (width - GUTTER - 8);
function cut(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  while (text.length > 1 && g.measureText(text + '…').width > width)
    text = text.slice(0, -1);
  return text.length > 1 ? text + '…' : '';
}

function drawAxis(s, bottom) {
  const g = s.g, wide = view.to - view.from;
  const ten = Math.pow(10, Math.floor(Math.log10(wide)));
  const step = [0.1, 0.2, 0.5, 1, 2].map(x => x * ten).find(
    x => wide / x <= 9);
  g.strokeStyle = css('--line');
  g.fillStyle = css('--soft');
  g.textAlign = 'center';
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
    const x = Math.round(xOf(s, t)) + 0.5;
    g.beginPath();
    g.moveTo(x, AXIS);
    g.lineTo(x, bottom);
    g.stroke();
    if (x < s.width - 24) g.fillText(
      timeText(Math.round(t)).replace('.00 ', ' '), x, AXIS / 2);
  }
  g.textAlign = 'left';
}

/* ---- Lanes */

/* {name, title, colour, items: [{start, end, unit or copy}] by start}. */
function makeLanes() {
  const lanes = plan.devices.map((d, i) => ({name: deviceText(i),
    title: d.name, colour: colourOf(i), items: []}));
  for (let n = 0; n < N; n++)
    lanes[dev[n]].items.push({start: start[n], end: end[n], unit: n,
      chain: chain.nodes.has(n)});
  const links = new Map();
  for (const c of copies) links.set(c.from * D + c.to, 0);
  const each = links.size <= 24; /* else by destination */
  const keys = [...new Set(copies.map(c => each ? c.from * D + c.to : c.to))]
    .sort((a, b) => a - b);
  keys.forEach((k, i) => {
    links.set(k, D + i);
    lanes.push({name: each ? deviceText(Math.floor(k / D)) + ' → ' +
      deviceText(k % D) : 'to ' + deviceText(k), colour: '', items: []});
  });
  for (const c of copies)
    lanes[links.get(each ? c.from * D + c.to : c.to)].items.push({
      start: c.start, end: c.end, copy: c, chain: chain.copies.has(c.id)});
  const shown = lanes.filter((l, i) => i >= D || used.includes(i));
  for (const l of shown) {
    l.items.sort((a, b) => a.start - b.start || a.end - b.end);
    l.title = l.title || l.name;
    let reach = 0; /* the last end so far */
    for (const item of l.items) item.reach = reach = Math.max(reach, item.end);
  }
  return shown;
}
/* The first item that may reach into [from, ...). */
function firstAfter(items, from) {
  let low = 0, high = items.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (items[mid].reach < from) low = mid + 1; else high = mid;
  }
  return low;
}

function blockText(item) {
  return item.copy ? plan.nodes[item.copy.node].name :
    plan.nodes[item.unit].name;
}
function drawLane(s, lane, y, height) {
  const g = s.g, colour = lane.colour || css('--cut');
  const dense = new Float32Array(Math.ceil(s.width) + 1);
  let thin = false;
  const marks = [];
  for (let i = firstAfter(lane.items, view.from); i < lane.items.length; i++) {
    const item = lane.items[i];
    if (item.start > view.to) break;
    const x0 = Math.max(xOf(s, item.start), GUTTER);
    const x1 = Math.min(xOf(s, item.end), s.width - 8);
    if (item.chain && x1 > x0) marks.push(x0, x1);
    if (x1 - x0 < 2) {
      dense[Math.floor(x0)] += Math.max(x1 - x0, 0.08);
      thin = true;
      continue;
    }
    g.fillStyle = colour;
    g.fillRect(x0, y + 1, Math.max(x1 - x0 - 0.7, 1), height - 2);
    if (x1 - x0 > 34 && height > 14) {
      g.fillStyle = '#fff';
      g.fillText(cut(g, blockText(item), x1 - x0 - 8), x0 + 4, y + height / 2);
    }
    if (item.unit !== undefined && item.unit === selected) {
      g.strokeStyle = css('--ink');
      g.lineWidth = 2.5;
      g.strokeRect(x0, y + 1, x1 - x0, height - 2);
      g.lineWidth = 1;
    }
  }
  g.fillStyle = colour;
  for (let x = 0; thin && x < dense.length; x++) {
    if (dense[x] === 0) continue;
    g.globalAlpha = Math.min(1, 0.3 + 0.7 * dense[x]);
    g.fillRect(x, y + 1, 1, height - 2);
  }
  g.globalAlpha = 1;
  g.fillStyle = css('--ink');
  for (let i = 0; i < marks.length; i += 2)
    g.fillRect(marks[i], y + height - 3, Math.max(marks[i + 1] - marks[i], 1),
      3);
}

function timeline() {
  const lanes = makeLanes();
  const height = Math.max(7, Math.min(26, Math.floor(3000 / lanes.length)));
  const total = AXIS + lanes.length * (height + 3) + 6;
  const canvas = el('canvas', {id: 'lanes'});
  root.dataset.lanes = lanes.length;
  function paint() {
    const s = surface(canvas, total), g = s.g;
    lanes.forEach((l, i) => {
      const y = AXIS + i * (height + 3);
      g.fillStyle = css('--lane');
      g.fillRect(GUTTER, y, s.width - GUTTER - 8, height);
    });
    drawAxis(s, total - 4);
    lanes.forEach((l, i) => {
      const y = AXIS + i * (height + 3);
      if (height > 11) {
        g.fillStyle = l.colour || css('--cut');
        g.fillRect(0, y + height / 2 - 5, 10, 10);
        g.fillStyle = css('--ink');
        g.fillText(cut(g, l.name, GUTTER - 24), 16, y + height / 2);
      }
      drawLane(s, l, y, height);
    });
    const x = xOf(s, plan.lower_bound_ns);
    if (x >= GUTTER && x <= s.width) {
      g.strokeStyle = css('--good');
      g.lineWidth = 2;
      g.setLineDash([5, 4]);
      g.beginPath();
      g.moveTo(x, AXIS);
      g.lineTo(x, total - 4);
      g.stroke();
      g.setLineDash([]);
      g.lineWidth = 1;
    }
  }
  repaint.push(paint);
  function hit(e) {
    const r = canvas.getBoundingClientRect(), x = e.clientX - r.left;
    const lane = lanes[Math.floor((e.clientY - r.top - AXIS) / (height + 3))];
    if (!lane) return null;
    if (x < GUTTER) return {lane};
    const ns = nsAt(r.width, x), near = nsAt(r.width, x + 2) - ns;
    let best = null, far = Infinity;
    for (let i = firstAfter(lane.items, ns - near); i < lane.items.length;
         i++) {
      const item = lane.items[i];
      if (item.start > ns + near) break;
      const d = Math.max(item.start - ns, ns - item.end, 0);
      if (d < far) [best, far] = [item, d];
    }
    return {lane, item: best};
  }
  steer(canvas, e => {
    const h = hit(e);
    showTip(e, !h ? '' : !h.item ? h.lane.title : h.item.copy ?
      copyTip(h.item.copy) : unitTip(h.item.unit));
  }, e => {
    const h = hit(e);
    if (h && h.item) select(h.item.copy ? h.item.copy.node : h.item.unit);
  });
  return canvas;
}

/* ---- Zoom and pan, the same for every canvas over time */

function zoom(factor, ns) {
  const a = Math.max(0, ns - (ns - view.from) * factor);
  const b = Math.min(span, ns + (view.to - ns) * factor);
  if (b - a < 10 && factor < 1) return;
  view.from = a;
  view.to = b;
  paintAll();
}
function pan(ns) {
  const wide = view.to - view.from;
  view.from = Math.max(0, Math.min(span - wide, view.from + ns));
  view.to = view.from + wide;
  paintAll();
}
function steer(canvas, hover, click) {
  let down = null;
  canvas.addEventListener('wheel', e => {
    e.preventDefault();
    const r = canvas.getBoundingClientRect();
    zoom(e.deltaY > 0 ? 1.25 : 0.8, nsAt(r.width, Math.max(e.clientX - r.left,
      GUTTER)));
  }, {passive: false});
  canvas.addEventListener('pointerdown', e => {
    down = {x: e.clientX, moved: false};
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener('pointermove', e => {
    if (down) {
      const r = canvas.getBoundingClientRect();
      const ns = nsAt(r.width, down.x) - nsAt(r.width, e.clientX);
      if (Math.abs(e.clientX - down.x) > 3) down.moved = true;
      if (!down.moved) return;
      down.x = e.clientX;
      pan(ns);
    } else {
      hover(e);
    }
  });
  canvas.addEventListener('pointerup', e => {
    if (down && !down.moved) click(e);
    down = null;
  });
  canvas.addEventListener('pointerleave', e => showTip(e, ''));
  canvas.addEventListener('dblclick', () => {
    view.from = 0;
    view.to = span;
    paintAll();
  });
}

/* ---- Memory: variables always, and constants where a unit reads them; a unit's
 * own bytes while it runs; a tensor from its unit's start to its last use or the
 * end of its last copy away; a copy from its start to its last use. The peaks
 * are those of the dump. */

function memoryCurves() {
  const keeper = t => t.kept ? t.node : t.keeper === undefined ? -1 : t.keeper;
  const held = (t, d) => // nothing where a variable has its bytes
    dev[keeper(t)] === d ? 0 : t.memory_bytes || t.bytes;
  const events = plan.devices.map(() => []), base = new Float64Array(D);
  const hold = (d, from, to, bytes) => {
    if (bytes && to > from) events[d].push([from, bytes], [to, -bytes]);
  };
  const until = plan.tensors.map((t, i) => uses[i].reduce(
    (m, u) => dev[u] === dev[t.node] ? Math.max(m, end[u]) : m, end[t.node]));
  for (const c of copies) {
    until[c.tensor] = Math.max(until[c.tensor], c.end);
    hold(c.to, c.start, uses[c.tensor].reduce((m, u) => dev[u] === c.to ?
      Math.max(m, end[u]) : m, c.end), held(plan.tensors[c.tensor], c.to));
  }
  plan.tensors.forEach((t, i) => {
    hold(dev[t.node], start[t.node], until[i], held(t, dev[t.node]));
  });
  plan.nodes.forEach((u, n) => {
    base[dev[n]] += u.resident_bytes || 0;
    hold(dev[n], start[n], end[n], u.temp_bytes || 0);
  });
  for (const c of plan.constants || [])
    for (const d of new Set(c.readers.map(n => dev[n]))) base[d] += c.bytes;
  return events.map((list, d) => {
    list.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const times = [0], levels = [base[d]];
    let now = base[d], peak = now, at = 0;
    for (const [t, b] of list) {
      now += b;
      if (t === times[times.length - 1]) levels[levels.length - 1] = now;
      else { times.push(t); levels.push(now); }
      if (now > peak) [peak, at] = [now, t];
    }
    return {times, levels, peak, at, base: base[d]};
  });
}
function drawCurve(s, curve, d, y, height) {
  const g = s.g, cap = plan.devices[d].memory_bytes;
  const most = Math.max(cap && cap < 4 * curve.peak ? cap : curve.peak, 1);
  const yOf = b => y + height - (height - 4) * b / most;
  g.fillStyle = css('--lane');
  g.fillRect(GUTTER, y, s.width - GUTTER - 8, height);
  g.fillStyle = colourOf(d);
  /* The most of each pixel, and the level after the last event before it. */
  let i = 0, level = 0;
  for (let x = GUTTER; x < s.width - 8; x++) {
    const to = nsAt(s.width, x + 1);
    let top = level;
    for (; i < curve.times.length && curve.times[i] < to; i++) {
      level = curve.levels[i];
      if (curve.times[i] >= nsAt(s.width, x)) top = Math.max(top, level);
      else top = level;
    }
    g.fillRect(x, yOf(top), 1, y + height - yOf(top));
  }
  if (cap && cap <= most) {
    g.strokeStyle = css('--cut');
    g.setLineDash([6, 3]);
    g.beginPath();
    g.moveTo(GUTTER, yOf(cap));
    g.lineTo(s.width - 8, yOf(cap));
    g.stroke();
    g.setLineDash([]);
  }
  g.fillStyle = css('--ink');
  g.fillText(cut(g, deviceText(d), GUTTER - 24), 16, y + height / 2 - 8);
  g.fillStyle = css('--soft');
  g.fillText(cut(g, bytesText(curve.peak) + (cap ? ' of ' + bytesText(cap) :
    ' at most'), GUTTER - 24), 16, y + height / 2 + 8);
}
function memory() {
  const curves = memoryCurves(), canvas = el('canvas', {id: 'memory'});
  const height = D <= 8 ? 52 : 40, rows = used.slice(0, 40);
  root.dataset.peaks = curves.every(
    (c, d) => c.peak === plan.devices[d].peak_bytes) ? 'agree' : 'differ';
  const total = AXIS + rows.length * (height + 6) + 4;
  repaint.push(() => {
    const s = surface(canvas, total);
    rows.forEach((d, i) => {
      const y = AXIS + i * (height + 6);
      s.g.fillStyle = colourOf(d);
      s.g.fillRect(0, y + height / 2 - 13, 10, 10);
      drawCurve(s, curves[d], d, y, height);
    });
    drawAxis(s, AXIS + 4);
  });
  steer(canvas, e => {
    const r = canvas.getBoundingClientRect();
    const d = rows[Math.floor((e.clientY - r.top - AXIS) / (height + 6))];
    if (d === undefined || e.clientX - r.left < GUTTER) return showTip(e, '');
    const c = curves[d], ns = nsAt(r.width, e.clientX - r.left);
    let low = 0, high = c.times.length;
    while (low + 1 < high) {
      const mid = (low + high) >> 1;
      if (c.times[mid] <= ns) low = mid; else high = mid;
    }
    showTip(e, plan.devices[d].name + '\n' + bytesText(c.levels[low]) + ' at ' +
      timeText(Math.round(ns)) + '\nvariables ' + bytesText(c.base) +
      '\npeak ' + bytesText(c.peak) + ' at ' + timeText(c.at));
  }, () => {});
  return canvas;
}
