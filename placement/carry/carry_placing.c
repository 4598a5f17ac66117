/* SPDX-License-Identifier: Apache-2.0 */
/* A placing as bytes: a mark, the cluster as it was resolved, measured costs as
 * their file's text, the requests of the command line, homes by name. */
#include "placement/carry/carry_placing.h"
#include "placement/carry/carry_bytes.h"
#include "placement/lower/cost_file_read.h"

enum {
  PLACING_MARK = 0x33434c50, /* PLC3 */
  TASK_BYTES = 28,
  DEVICE_BYTES = 32,
  WISH_BYTES = 16,
  HOME_BYTES = 12
};

/* ---- Writing */

static void write_link(weir_strbuf *out, const weir_place_link *l) {
  weir_carry_i64(out, l->latency_ns);
  weir_carry_i64(out, l->fs_per_byte);
  weir_carry_u32(out, l->exclusive);
  weir_carry_i64(out, l->send_ns);
  weir_carry_i64(out, l->send_fs_per_byte);
}

static void write_class(weir_strbuf *out, const weir_cluster_class *c) {
  weir_carry_u32(out, (uint32_t)c->kind);
  weir_carry_u32(out, c->count);
  weir_carry_u32(out, c->threads);
  weir_carry_i64(out, c->model.memory_bytes);
  weir_carry_i64(out, c->model.mflops);
  weir_carry_i64(out, c->model.bytes_per_us);
  weir_carry_i64(out, c->model.overhead_ns);
}

static void write_cluster(weir_strbuf *out, const weir_cluster *c) {
  weir_carry_u32(out, c->task_count);
  for (uint32_t i = 0; i < c->task_count; i++) {
    const weir_cluster_task *t = &c->tasks[i];
    weir_carry_text(out, t->job);
    weir_carry_u32(out, t->index);
    weir_carry_text(out, t->address);
    weir_carry_u32(out, t->first_device);
    weir_carry_u32(out, t->device_count);
  }
  weir_carry_u32(out, c->device_count);
  for (uint32_t i = 0; i < c->device_count; i++) {
    const weir_cluster_device *d = &c->devices[i];
    weir_carry_text(out, d->text);
    weir_carry_u32(out, d->task);
    weir_carry_u32(out, d->cls);
    weir_carry_i64(out, d->memory_bytes);
    weir_carry_u32(out, d->memory_given);
    weir_carry_u32(out, d->in_turns);
  }
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
    weir_carry_u32(out, c->kind_count[k]);
    write_link(out, &c->local[k]);
  }
  weir_carry_u32(out, c->class_count);
  for (uint32_t i = 0; i < c->class_count; i++)
    write_class(out, &c->classes[i]);
  write_link(out, &c->network);
  weir_carry_u32(out, c->one_process);
  for (int i = 0; i < WEIR_DEVICE_KINDS; i++)
    for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
      weir_carry_u32(out, c->known[i][k]);
      write_link(out, &c->way[i][k]);
    }
}

static weir_status write_costs(const weir_placing *p, weir_strbuf *out,
                               weir_error *err) {
  weir_strbuf text;
  weir_strbuf_init(&text, p->alloc);
  weir_writer writer = weir_strbuf_writer(&text);
  bool ok = p->costs == NULL || weir_costs_write(p->costs, &writer);
  weir_carry_text(out, weir_strbuf_view(&text));
  weir_strbuf_release(&text);
  return ok ? WEIR_OK : weir_fail_memory(err, 0);
}

static void write_wishes(const weir_placing *p, weir_strbuf *out) {
  weir_carry_u32(out, p->wish_count);
  for (uint32_t i = 0; i < p->wish_count; i++) {
    char text[128];
    weir_device_name_print(&p->wishes[i].device, text, sizeof text);
    weir_carry_text(out, p->wishes[i].node);
    weir_carry_text(out, weir_sv_from(text));
  }
}

static bool has_home(const weir_placing *p, const weir_graph *g,
                     weir_node_id id) {
  return g->nodes[id].op->instr == WEIR_INSTR_VAR_READ &&
         weir_placing_home(p, g->nodes[id].name) != WEIR_PLACE_NONE;
}

static void write_homes(const weir_placing *p, const weir_graph *g,
                        weir_strbuf *out) {
  uint32_t count = 0;
  for (weir_node_id id = 0; id < g->node_count; id++)
    count += has_home(p, g, id);
  weir_carry_u32(out, count);
  for (weir_node_id id = 0; id < g->node_count; id++) {
    if (!has_home(p, g, id)) continue;
    weir_carry_text(out, g->nodes[id].name);
    weir_carry_u32(out, weir_placing_home(p, g->nodes[id].name));
  }
}

weir_status weir_placing_pack(const weir_placing *p, const weir_graph *graph,
                              weir_strbuf *out, weir_error *err) {
  weir_carry_u32(out, PLACING_MARK);
  weir_carry_u32(out, (uint32_t)p->options.strictness);
  weir_carry_u32(out, p->options.in_process);
  weir_carry_u32(out, p->logical);
  weir_carry_u32(out, p->options.ask != NULL);
  write_cluster(out, p->cluster);
  WEIR_TRY(write_costs(p, out, err));
  write_wishes(p, out);
  write_homes(p, graph, out);
  return weir_strbuf_status(out, err);
}

/* ---- Reading */

typedef struct taker {
  weir_reader r;
  weir_placing *p;
  weir_cluster *c;
  weir_error *err;
} taker;

static weir_status malformed(const taker *t, const char *what) {
  return weir_fail(t->err, WEIR_W7051, NULL,
                   "the placing that came is malformed: %s", what);
}

static weir_status keep(taker *t, weir_arena *arena, weir_sv *text) {
  char *copy = weir_arena_string(arena, text->data, text->size);
  if (copy == NULL) return weir_fail_memory(t->err, text->size);
  text->data = copy;
  return WEIR_OK;
}

static weir_place_link read_link(weir_reader *r) {
  weir_place_link l = {.latency_ns = weir_carried_i64(r)};
  l.fs_per_byte = weir_carried_i64(r);
  l.exclusive = weir_reader_u32le(r) != 0;
  l.send_ns = weir_carried_i64(r);
  l.send_fs_per_byte = weir_carried_i64(r);
  if (l.latency_ns < 0 || l.fs_per_byte < 0 || l.send_ns < 0 ||
      l.send_fs_per_byte < 0)
    r->failed = true;
  return l;
}

static weir_status read_tasks(taker *t) {
  weir_cluster *c = t->c;
  uint32_t count = weir_carried_count(&t->r, TASK_BYTES);
  if (count == 0 || count > WEIR_CLUSTER_TASKS)
    return malformed(t, "number of tasks");
  weir_cluster_task *tasks = weir_arena_array(&c->arena, count, sizeof *tasks);
  if (tasks == NULL) return weir_fail_memory(t->err, count);
  c->tasks = tasks;
  c->task_count = count;
  for (uint32_t i = 0; i < count; i++) {
    tasks[i].job = weir_carried_text(&t->r);
    tasks[i].index = weir_reader_u32le(&t->r);
    tasks[i].address = weir_carried_text(&t->r);
    tasks[i].first_device = weir_reader_u32le(&t->r);
    tasks[i].device_count = weir_reader_u32le(&t->r);
    if (tasks[i].job.size >= WEIR_DEVICE_JOB_BYTES)
      return malformed(t, "name of a job");
    WEIR_TRY(keep(t, &c->arena, &tasks[i].job));
    WEIR_TRY(keep(t, &c->arena, &tasks[i].address));
  }
  return WEIR_OK;
}

static weir_status read_devices(taker *t) {
  weir_cluster *c = t->c;
  uint32_t count = weir_carried_count(&t->r, DEVICE_BYTES);
  if (count == 0) return malformed(t, "number of devices");
  weir_cluster_device *devices =
      weir_arena_array(&c->arena, count, sizeof *devices);
  if (devices == NULL) return weir_fail_memory(t->err, count);
  c->devices = devices;
  c->device_count = count;
  for (uint32_t i = 0; i < count; i++) {
    weir_cluster_device *d = &devices[i];
    d->text = weir_carried_text(&t->r);
    d->task = weir_reader_u32le(&t->r);
    d->cls = weir_reader_u32le(&t->r);
    d->memory_bytes = weir_carried_i64(&t->r);
    d->memory_given = weir_reader_u32le(&t->r) != 0;
    d->in_turns = weir_reader_u32le(&t->r) != 0;
    if (d->task >= c->task_count || d->cls >= WEIR_PLACE_CLASSES ||
        d->memory_bytes < 0 ||
        weir_device_name_parse(d->text, &d->name, NULL, NULL) != WEIR_OK ||
        !weir_device_name_is_full(&d->name))
      return malformed(t, "a device");
    WEIR_TRY(keep(t, &c->arena, &d->text));
  }
  return WEIR_OK;
}

static bool ranges_fit(const weir_cluster *c) {
  for (uint32_t i = 0; i < c->task_count; i++)
    if (c->tasks[i].first_device > c->device_count ||
        c->tasks[i].device_count > c->device_count - c->tasks[i].first_device)
      return false;
  for (uint32_t i = 0; i < c->device_count; i++)
    if (c->devices[i].cls >= c->class_count) return false;
  return true;
}

static weir_status read_cluster(taker *t) {
  weir_cluster *c = t->c;
  weir_reader *r = &t->r;
  WEIR_TRY(read_tasks(t));
  WEIR_TRY(read_devices(t));
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
    c->kind_count[k] = weir_reader_u32le(r);
    c->local[k] = read_link(r);
  }
  c->class_count = weir_reader_u32le(r);
  if (c->class_count > WEIR_PLACE_CLASSES)
    return malformed(t, "number of classes");
  for (uint32_t i = 0; i < c->class_count; i++) {
    weir_cluster_class *k = &c->classes[i];
    uint32_t kind = weir_reader_u32le(r);
    k->kind = (weir_device_kind)kind;
    k->count = weir_reader_u32le(r);
    k->threads = weir_reader_u32le(r);
    k->model.memory_bytes = weir_carried_i64(r);
    k->model.mflops = weir_carried_i64(r);
    k->model.bytes_per_us = weir_carried_i64(r);
    k->model.overhead_ns = weir_carried_i64(r);
    if (kind >= WEIR_DEVICE_KINDS || k->threads == 0 || k->threads > 256 ||
        k->model.mflops <= 0 || k->model.bytes_per_us <= 0 ||
        k->model.overhead_ns < 0)
      return malformed(t, "a class of devices");
  }
  c->network = read_link(r);
  c->one_process = weir_reader_u32le(r) != 0;
  for (int i = 0; i < WEIR_DEVICE_KINDS; i++)
    for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
      c->known[i][k] = weir_reader_u32le(r) != 0;
      c->way[i][k] = read_link(r);
    }
  return r->failed || !ranges_fit(c) ? malformed(t, "the cluster") : WEIR_OK;
}

static weir_status read_wishes(taker *t) {
  weir_placing *p = t->p;
  uint32_t count = weir_carried_count(&t->r, WISH_BYTES);
  weir_place_wish *w =
      weir_arena_array(&p->arena, (size_t)count + 1, sizeof *w);
  if (w == NULL) return weir_fail_memory(t->err, count);
  for (uint32_t i = 0; i < count; i++) {
    w[i].node = weir_carried_text(&t->r);
    weir_sv device = weir_carried_text(&t->r);
    if (weir_device_name_parse(device, &w[i].device, NULL, NULL) != WEIR_OK)
      return malformed(t, "a request");
    WEIR_TRY(keep(t, &p->arena, &w[i].node));
  }
  p->wishes = w;
  p->wish_count = count;
  return WEIR_OK;
}

static weir_status read_homes(taker *t) {
  weir_placing *p = t->p;
  uint32_t count = weir_carried_count(&t->r, HOME_BYTES);
  for (uint32_t i = 0; i < count; i++) {
    weir_sv name = weir_carried_text(&t->r);
    uint32_t device = weir_reader_u32le(&t->r);
    if (device >= t->c->device_count) return malformed(t, "a home");
    WEIR_TRY(keep(t, &p->arena, &name));
    if (!weir_map_put(&p->homes, name, device, NULL))
      return weir_fail_memory(t->err, count);
  }
  return WEIR_OK;
}

static weir_status read_placing(taker *t) {
  weir_placing *p = t->p;
  if (weir_reader_u32le(&t->r) != PLACING_MARK)
    return malformed(t, "another kind of data");
  uint32_t strictness = weir_reader_u32le(&t->r);
  p->options.in_process = weir_reader_u32le(&t->r) != 0;
  p->logical = weir_reader_u32le(&t->r) != 0;
  if (weir_reader_u32le(&t->r) == 0) p->options.ask = NULL; /* nor there */
  if (strictness > WEIR_PLACE_SOFT) return malformed(t, "strictness");
  p->options.strictness = (weir_place_strictness)strictness;
  WEIR_TRY(read_cluster(t));
  weir_sv costs = weir_carried_text(&t->r);
  if (costs.size > 0)
    WEIR_TRY(weir_costs_read(p->alloc, costs, "costs", &p->costs, t->err));
  WEIR_TRY(read_wishes(t));
  WEIR_TRY(read_homes(t));
  return t->r.failed || weir_reader_left(&t->r) != 0
             ? malformed(t, "its length")
             : WEIR_OK;
}

weir_status weir_placing_unpack(const weir_allocator *alloc, weir_bytes bytes,
                                weir_lower_ask ask, const void *ask_self,
                                weir_placing **out_placing, weir_error *err) {
  taker t = {.r = weir_reader_of(bytes.data, bytes.size), .err = err};
  *out_placing = NULL;
  t.p = weir_alloc_array(alloc, 1, sizeof *t.p);
  t.c = weir_alloc_array(alloc, 1, sizeof *t.c);
  if (t.p == NULL || t.c == NULL) {
    weir_free(alloc, t.p);
    weir_free(alloc, t.c);
    return weir_fail_memory(err, sizeof *t.c);
  }
  atomic_init(&t.p->refs, 1);
  t.p->alloc = alloc;
  weir_arena_init(&t.p->arena, alloc);
  weir_map_init(&t.p->homes, alloc);
  weir_arena_init(&t.c->arena, alloc);
  t.p->cluster = t.c;
  t.p->options.ask = ask;
  t.p->options.ask_self = ask_self;
  weir_status s = read_placing(&t);
  if (s == WEIR_OK)
    *out_placing = t.p;
  else
    weir_placing_unref(t.p);
  return s;
}
