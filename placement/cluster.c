/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters from YAML and from the short form.
 *
 * Jobs, counts and models are read first, in any order of keys; then devices
 * are made from them, by job, task, kind and number. So a device's number
 * depends on the cluster alone. Each fault is reported at its place; limits (16
 * jobs, 512 tasks, 1024 devices) are checked before memory is asked for. */
#include "placement/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/quantity.h"
#include "runtime/base/yaml/yaml_scalar.h"

/* A job as it is written; devices are made from it later. */
typedef struct job {
  weir_sv name;
  uint32_t tasks;
  const weir_yaml *addresses; /* a list, or NULL */
} job;

enum { JOBS = 16 };

typedef struct reader {
  weir_cluster *c;
  job jobs[JOBS];
  uint32_t job_count;
  int64_t per_task[WEIR_DEVICE_KINDS];
  weir_error *err;
} reader;

static const weir_sv none = {"", 0};

static void set_defaults(reader *r) {
  weir_cluster *c = r->c;
  c->network = (weir_place_link){50000, 800000, true}; /* 1.25 GB/s */
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
    const weir_device_kind_def *kind = weir_device_kinds[k];
    r->per_task[k] = kind->per_task;
    c->models[k] = kind->model;
    c->local[k] = (weir_place_link){.latency_ns = kind->way.latency_ns,
                                    .fs_per_byte = kind->way.fs_per_byte,
                                    .exclusive = true};
  }
}

static weir_status bad(reader *r, const weir_mark *at, const char *what,
                       weir_sv text) {
  return weir_fail(r->err, WEIR_W3020, at, "cluster: %s: %.*s", what,
                   WEIR_SV(text));
}

/* ---- Keys */

static weir_status add_job(reader *r, weir_sv name, int64_t tasks,
                           const weir_yaml *addresses, const weir_mark *at) {
  bool sound = name.size > 0 && name.size < WEIR_DEVICE_JOB_BYTES;
  for (size_t i = 0; i < name.size; i++) {
    char ch = name.data[i];
    sound &= (ch >= 'a' && ch <= 'z') || ch == '_' ||
             (i > 0 && ch >= '0' && ch <= '9');
  }
  if (!sound) return bad(r, at, "not the name of a job", name);
  if (tasks < 1 || tasks > WEIR_CLUSTER_TASKS)
    return bad(r, at, "a job has 1 to 512 tasks", name);
  if (r->job_count == JOBS) return bad(r, at, "more than 16 jobs", name);
  for (uint32_t i = 0; i < r->job_count; i++)
    if (weir_sv_equal(r->jobs[i].name, name))
      return bad(r, at, "a job named twice", name);
  r->jobs[r->job_count++] = (job){name, (uint32_t)tasks, addresses};
  return WEIR_OK;
}

/* A number of devices per task where |key| is a kind, else a job. */
static weir_status read_count(reader *r, weir_sv key, int64_t count,
                              const weir_mark *key_at, const weir_mark *at) {
  weir_device_kind kind = weir_device_kind_find(key);
  if (kind == WEIR_DEVICE_ANY) return add_job(r, key, count, NULL, key_at);
  if (count < 0 || count > 64)
    return bad(r, at, "a task has 0 to 64 devices of a kind", key);
  r->per_task[kind] = count;
  return WEIR_OK;
}

static weir_status read_link(reader *r, const weir_yaml *y,
                             weir_place_link *link) {
  if (y->kind != WEIR_YAML_MAP)
    return bad(r, &y->mark, "expected {latency:, bandwidth:}", none);
  for (uint32_t i = 0; i < y->count; i++) {
    const weir_yaml_entry *e = &y->entries[i];
    weir_sv text = e->value->kind == WEIR_YAML_SCALAR ? e->value->text : none;
    int64_t rate;
    if (weir_sv_is(e->key, "latency")) {
      if (!weir_quantity_time(text, &link->latency_ns))
        return bad(r, &e->value->mark, "a time is written 50us", text);
    } else if (weir_sv_is(e->key, "bandwidth")) {
      if (!weir_quantity_rate(text, &rate))
        return bad(r, &e->value->mark, "a rate is written 10GB/s", text);
      link->fs_per_byte = weir_place_fs_per_byte(rate);
    } else if (weir_sv_is(e->key, "send_overhead")) {
      if (!weir_quantity_time(text, &link->send_ns))
        return bad(r, &e->value->mark, "a time is written 50us", text);
    } else if (weir_sv_is(e->key, "send_bandwidth")) {
      if (!weir_quantity_rate(text, &rate))
        return bad(r, &e->value->mark, "a rate is written 10GB/s", text);
      link->send_fs_per_byte = weir_place_fs_per_byte(rate);
    } else {
      return bad(r, &e->key_mark,
                 "no such key, expected latency, bandwidth, send_overhead or "
                 "send_bandwidth",
                 e->key);
    }
  }
  return WEIR_OK;
}

/* One link for all kinds, from the default kind's. */
static weir_status read_local(reader *r, const weir_yaml *y) {
  weir_place_link link = r->c->local[0];
  WEIR_TRY(read_link(r, y, &link));
  weir_cluster_set_local(r->c, &link);
  return WEIR_OK;
}

static weir_status read_model_key(reader *r, const weir_yaml_entry *e,
                                  weir_device_model *m) {
  weir_sv text = e->value->kind == WEIR_YAML_SCALAR ? e->value->text : none;
  double number;
  if (weir_sv_is(e->key, "memory")) {
    if (weir_quantity_bytes(text, &m->memory_bytes)) return WEIR_OK;
    return bad(r, &e->value->mark, "a size is written 16GiB", text);
  }
  if (weir_sv_is(e->key, "bandwidth")) {
    if (weir_quantity_rate(text, &m->bytes_per_us)) return WEIR_OK;
    return bad(r, &e->value->mark, "a rate is written 20GB/s", text);
  }
  if (weir_sv_is(e->key, "overhead")) {
    if (weir_quantity_time(text, &m->overhead_ns)) return WEIR_OK;
    return bad(r, &e->value->mark, "a time is written 2us", text);
  }
  if (!weir_sv_is(e->key, "gflops"))
    return bad(r, &e->key_mark,
               "no such key, expected memory, gflops, bandwidth or overhead",
               e->key);
  if (!weir_text_float(text, &number) || !(number >= 0.001 && number < 1e12))
    return bad(r, &e->value->mark, "gflops is a number above 0", text);
  m->mflops = (int64_t)(number * 1000);
  return WEIR_OK;
}

static weir_status bad_kind(reader *r, const weir_yaml_entry *e) {
  char names[128], what[192];
  snprintf(what, sizeof what, "no such class, expected %s",
           weir_device_kind_names(names, sizeof names));
  return bad(r, &e->key_mark, what, e->key);
}

static weir_status read_models(reader *r, const weir_yaml *y) {
  if (y->kind != WEIR_YAML_MAP)
    return bad(r, &y->mark, "expected {cpu: {...}, ...}", none);
  for (uint32_t i = 0; i < y->count; i++) {
    const weir_yaml_entry *e = &y->entries[i];
    weir_device_kind kind = weir_device_kind_find(e->key);
    if (kind == WEIR_DEVICE_ANY) return bad_kind(r, e);
    if (e->value->kind != WEIR_YAML_MAP)
      return bad(r, &e->value->mark, "expected {memory:, gflops:, ...}", none);
    for (uint32_t k = 0; k < e->value->count; k++)
      WEIR_TRY(read_model_key(r, &e->value->entries[k], &r->c->models[kind]));
  }
  return WEIR_OK;
}

static weir_status read_key(reader *r, const weir_yaml_entry *e) {
  const weir_yaml *v = e->value;
  int64_t count;
  if (weir_sv_starts_with(e->key, "x-") || weir_sv_is(e->key, "insecure"))
    return WEIR_OK;
  if (weir_sv_is(e->key, "devices")) return read_models(r, v);
  if (weir_sv_is(e->key, "network")) return read_link(r, v, &r->c->network);
  if (weir_sv_is(e->key, "local")) return read_local(r, v);
  if (v->kind == WEIR_YAML_LIST)
    return add_job(r, e->key, v->count, v, &e->key_mark);
  if (!weir_yaml_int(v, &count))
    return bad(r, &v->mark, "expected a number of tasks or a list of addresses",
               e->key);
  return read_count(r, e->key, count, &e->key_mark, &v->mark);
}

/* ---- Devices */

/* How many devices of |kind| each task of job |j| has. */
static uint32_t count_of(const reader *r, uint32_t j, int kind) {
  bool may = !weir_device_kinds[kind]->workers_only || r->job_count == 1 ||
             weir_sv_is(r->jobs[j].name, "worker");
  return may ? (uint32_t)r->per_task[kind] : 0;
}

static uint32_t devices_of(const reader *r, uint32_t j) {
  uint32_t sum = 0;
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) sum += count_of(r, j, k);
  return sum;
}

/* The |number|-th device of |kind| of task |index| of job |j|. */
static bool add_device(reader *r, weir_cluster_device *d, uint32_t j,
                       uint32_t index, uint32_t number, int kind) {
  weir_cluster *c = r->c;
  char text[160];
  d->name = weir_device_name_any();
  memcpy(d->name.job, r->jobs[j].name.data, r->jobs[j].name.size);
  d->name.task = (weir_index_range){(int32_t)index, (int32_t)index};
  d->name.type = (weir_device_kind)kind;
  d->name.index = (weir_index_range){(int32_t)number, (int32_t)number};
  weir_device_name_print(&d->name, text, sizeof text);
  d->text =
      (weir_sv){weir_arena_string(&c->arena, text, strlen(text)), strlen(text)};
  d->task = c->task_count;
  d->memory_bytes = c->models[kind].memory_bytes;
  c->kind_count[kind]++;
  return d->text.data != NULL;
}

static weir_sv keep_text(weir_cluster *c, weir_sv text, bool *ok) {
  const char *copy = weir_arena_string(&c->arena, text.data, text.size);
  *ok &= copy != NULL;
  return (weir_sv){copy, text.size};
}

static bool add_task(reader *r, weir_cluster_task *tasks,
                     weir_cluster_device *devices, uint32_t j, uint32_t i) {
  weir_cluster *c = r->c;
  weir_cluster_task *t = &tasks[c->task_count];
  bool ok = true;
  t->job = keep_text(c, r->jobs[j].name, &ok);
  t->index = i;
  if (r->jobs[j].addresses != NULL)
    t->address = keep_text(c, r->jobs[j].addresses->items[i]->text, &ok);
  t->first_device = c->device_count;
  t->device_count = devices_of(r, j);
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
    for (uint32_t d = 0; d < count_of(r, j, k) && ok; d++)
      ok = add_device(r, &devices[c->device_count++], j, i, d, k);
  c->task_count++;
  return ok;
}

static weir_status make_devices(reader *r) {
  weir_cluster *c = r->c;
  size_t tasks = 0, devices = 0;
  for (uint32_t j = 0; j < r->job_count; j++) {
    tasks += r->jobs[j].tasks;
    devices += r->jobs[j].tasks * (size_t)devices_of(r, j);
  }
  if (tasks == 0 || devices == 0) return bad(r, NULL, "it has no device", none);
  if (devices > WEIR_PLACE_DEVICES)
    return bad(r, NULL, "more than 1024 devices", none);
  weir_cluster_task *t = weir_arena_array(&c->arena, tasks, sizeof *t);
  weir_cluster_device *d = weir_arena_array(&c->arena, devices, sizeof *d);
  if (t == NULL || d == NULL)
    return weir_fail_memory(r->err, devices * sizeof *d);
  c->tasks = t;
  c->devices = d;
  for (uint32_t j = 0; j < r->job_count; j++)
    for (uint32_t i = 0; i < r->jobs[j].tasks; i++)
      if (!add_task(r, t, d, j, i)) return weir_fail_memory(r->err, 64);
  return WEIR_OK;
}

/* ---- The two forms */

static weir_status begin(const weir_allocator *alloc, reader *r,
                         weir_error *err) {
  *r = (reader){.err = err};
  r->c = weir_alloc_array(alloc, 1, sizeof *r->c);
  if (r->c == NULL) return weir_fail_memory(err, sizeof *r->c);
  weir_arena_init(&r->c->arena, alloc);
  set_defaults(r);
  return WEIR_OK;
}

static weir_status end(reader *r, weir_status status, weir_cluster **out) {
  if (status == WEIR_OK) status = make_devices(r);
  if (status == WEIR_OK)
    *out = r->c;
  else
    weir_cluster_release(r->c);
  return status;
}

/* HOST:PORT, an IPv6 host in brackets. */
static bool is_address(weir_sv text) {
  size_t colon = text.size;
  int64_t port;
  while (colon > 0 && text.data[colon - 1] != ':') colon--;
  if (colon < 2) return false;
  weir_sv host = {text.data, colon - 1};
  weir_sv number = {text.data + colon, text.size - colon};
  bool bracketed = host.data[0] == '[' && host.data[host.size - 1] == ']';
  for (size_t i = 0; i < host.size; i++) {
    char ch = host.data[i];
    if (ch <= ' ' || ch == '/' || (ch == ':' && !bracketed)) return false;
  }
  return number.size > 0 && number.data[0] >= '0' && number.data[0] <= '9' &&
         weir_text_int(number, &port) && port >= 1 && port <= 65535;
}

/* Whether an earlier task of a section has |address|, which is item |item| of
 * entry |entry|. */
static const weir_yaml *find_address(const weir_yaml *section, uint32_t entry,
                                     uint32_t item, weir_sv address) {
  for (uint32_t i = 0; i <= entry; i++) {
    const weir_yaml *list = section->entries[i].value;
    if (list->kind != WEIR_YAML_LIST) continue;
    for (uint32_t k = 0; k < (i == entry ? item : list->count); k++)
      if (list->items[k]->kind == WEIR_YAML_SCALAR &&
          weir_sv_equal(list->items[k]->text, address))
        return list->items[k];
  }
  return NULL;
}

static weir_status check_addresses(reader *r, const weir_yaml *section,
                                   uint32_t entry) {
  const weir_yaml *list = section->entries[entry].value;
  if (list->kind != WEIR_YAML_LIST) return WEIR_OK;
  if (list->count > WEIR_CLUSTER_TASKS) return WEIR_OK; /* refused later */
  for (uint32_t i = 0; i < list->count; i++) {
    const weir_yaml *a = list->items[i];
    if (a->kind != WEIR_YAML_SCALAR || !is_address(a->text)) {
      weir_status s =
          bad(r, &a->mark, "not an address",
              a->kind == WEIR_YAML_SCALAR ? a->text : WEIR_SV_LIT("a list"));
      weir_hint(r->err, "HOST:PORT, the port from 1 to 65535");
      return s;
    }
    const weir_yaml *before = find_address(section, entry, i, a->text);
    if (before == NULL) continue;
    weir_status s = bad(r, &a->mark, "an address given twice", a->text);
    weir_hint(r->err, "line %u has it too; a task has an address of its own",
              before->mark.line);
    return s;
  }
  return WEIR_OK;
}

weir_status weir_cluster_from_yaml(const weir_allocator *alloc,
                                   const weir_yaml *section,
                                   weir_cluster **out_cluster,
                                   weir_error *err) {
  reader r;
  *out_cluster = NULL;
  WEIR_TRY(begin(alloc, &r, err));
  weir_status s = WEIR_OK;
  if (section->kind != WEIR_YAML_MAP)
    s = bad(&r, &section->mark, "expected a map of jobs", none);
  for (uint32_t i = 0; s == WEIR_OK && i < section->count; i++) {
    s = check_addresses(&r, section, i);
    if (s == WEIR_OK) s = read_key(&r, &section->entries[i]);
  }
  return end(&r, s, out_cluster);
}

static weir_status read_pair(reader *r, weir_sv pair) {
  const char *equals = memchr(pair.data, '=', pair.size);
  int64_t count;
  if (equals == NULL) return bad(r, NULL, "expected NAME=NUMBER", pair);
  weir_sv key = {pair.data, (size_t)(equals - pair.data)};
  weir_sv value = {equals + 1, pair.size - key.size - 1};
  if (!weir_text_int(value, &count))
    return bad(r, NULL, "expected NAME=NUMBER", pair);
  return read_count(r, key, count, NULL, NULL);
}

weir_status weir_cluster_from_text(const weir_allocator *alloc, weir_sv text,
                                   weir_cluster **out_cluster,
                                   weir_error *err) {
  reader r;
  *out_cluster = NULL;
  if (weir_sv_is(text, "auto")) text = WEIR_SV_LIT("worker=1");
  WEIR_TRY(begin(alloc, &r, err));
  weir_status s = WEIR_OK;
  while (s == WEIR_OK) {
    const char *comma = memchr(text.data, ',', text.size);
    size_t size = comma == NULL ? text.size : (size_t)(comma - text.data);
    s = read_pair(&r, (weir_sv){text.data, size});
    if (comma == NULL) break;
    text.data += size + 1;
    text.size -= size + 1;
  }
  return end(&r, s, out_cluster);
}

void weir_cluster_release(weir_cluster *c) {
  if (c == NULL) return;
  const weir_allocator *a = c->arena.alloc;
  weir_arena_release(&c->arena);
  weir_free(a, c);
}

/* ---- Use */

/* Within a task the slower of the two devices' ways. */
static weir_place_link way_between(const weir_cluster *c,
                                   const weir_cluster_device *from,
                                   const weir_cluster_device *to) {
  if (from->task != to->task) return c->network;
  weir_place_link way = c->local[from->name.type];
  const weir_place_link *other = &c->local[to->name.type];
  if (other->latency_ns > way.latency_ns) way.latency_ns = other->latency_ns;
  if (other->fs_per_byte > way.fs_per_byte)
    way.fs_per_byte = other->fs_per_byte;
  return way;
}

void weir_cluster_set_local(weir_cluster *c, const weir_place_link *link) {
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) c->local[k] = *link;
}

void weir_cluster_add_to(const weir_cluster *c, weir_place_builder *b) {
  for (uint32_t d = 0; d < c->device_count; d++) {
    const weir_cluster_device *v = &c->devices[d];
    weir_place_add_device(
        b,
        &(weir_place_device){v->text, (uint32_t)v->name.type, v->memory_bytes});
  }
  for (uint32_t i = 0; i < c->device_count; i++)
    for (uint32_t k = 0; k < c->device_count; k++) {
      if (i == k) continue;
      weir_place_link way = way_between(c, &c->devices[i], &c->devices[k]);
      weir_place_connect(b, i, k, weir_place_add_link(b, &way));
    }
}
