/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters from YAML and from the short form.
 *
 * Jobs and what holds for all are read first, in any order of keys; then the
 * machine of each task, its job's keys over those of the section and its own
 * over those of its job; then devices are made, by job, task, kind and number.
 * So a device's number depends on the cluster alone. Each fault is reported at
 * its place; limits (16 jobs, 512 tasks, 1024 devices) are checked before
 * memory is asked for. */
#include "placement/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "placement/cluster/address.h"
#include "placement/cluster/machine.h"
#include "runtime/base/quantity.h"
#include "runtime/base/yaml/yaml_scalar.h"

/* A job as it is written; devices are made from it later. */
typedef struct job {
  weir_sv name;
  uint32_t tasks;
  const weir_yaml *list;  /* an address or a map for each task, or NULL */
  const weir_yaml *shape; /* keys that hold for all of its tasks, or NULL */
} job;

enum { JOBS = 16 };

typedef struct reader {
  weir_cluster *c;
  job jobs[JOBS];
  uint32_t job_count;
  weir_machine machine; /* where neither job nor task says otherwise */
  weir_error *err;
} reader;

static const weir_sv none = {"", 0};

static void set_defaults(reader *r) {
  weir_cluster *c = r->c;
  c->network = (weir_place_link){50000, 800000, true}; /* 1.25 GB/s */
  r->machine = weir_machine_default();
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
    const weir_device_kind_def *kind = weir_device_kinds[k];
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

static weir_status add_job(reader *r, const job *added, const weir_mark *at) {
  weir_sv name = added->name;
  bool sound = name.size > 0 && name.size < WEIR_DEVICE_JOB_BYTES;
  for (size_t i = 0; i < name.size; i++) {
    char ch = name.data[i];
    sound &= (ch >= 'a' && ch <= 'z') || ch == '_' ||
             (i > 0 && ch >= '0' && ch <= '9');
  }
  if (!sound) return bad(r, at, "not the name of a job", name);
  if (added->tasks < 1 || added->tasks > WEIR_CLUSTER_TASKS)
    return bad(r, at, "a job has 1 to 512 tasks", name);
  if (r->job_count == JOBS) return bad(r, at, "more than 16 jobs", name);
  for (uint32_t i = 0; i < r->job_count; i++)
    if (weir_sv_equal(r->jobs[i].name, name))
      return bad(r, at, "a job named twice", name);
  r->jobs[r->job_count++] = *added;
  return WEIR_OK;
}

/* |tasks| as a job's number, 0 where it is out of range. */
static uint32_t task_count(int64_t tasks) {
  return tasks > 0 && tasks <= WEIR_CLUSTER_TASKS ? (uint32_t)tasks : 0;
}

/* A number of devices per task where |key| is a kind, of threads where it says
 * so, else a job. */
static weir_status read_count(reader *r, weir_sv key, int64_t count,
                              const weir_mark *key_at, const weir_mark *at) {
  weir_device_kind kind = weir_device_kind_find(key);
  if (weir_sv_is(key, "threads"))
    return weir_machine_set_threads(&r->machine, count, at, r->err);
  if (kind == WEIR_DEVICE_ANY)
    return add_job(r, &(job){.name = key, .tasks = task_count(count)}, key_at);
  if (count < 0 || count > 64)
    return bad(r, at, "a task has 0 to 64 devices of a kind", key);
  r->machine.parts[kind].count = (uint32_t)count;
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
    WEIR_TRY(weir_machine_read_part(e->value, kind, false,
                                    &r->machine.parts[kind], r->err));
  }
  return WEIR_OK;
}

static weir_status expect_list(reader *r, const weir_yaml *y) {
  return y->kind == WEIR_YAML_LIST
             ? WEIR_OK
             : bad(r, &y->mark, "expected a list of addresses", none);
}

/* {tasks: 2, cpu: {gflops: 300}}: devices are read with each task. */
static weir_status read_job(reader *r, const weir_yaml_entry *e) {
  job j = {.name = e->key, .tasks = 1, .shape = e->value};
  const weir_yaml *tasks = weir_yaml_get(e->value, "tasks");
  int64_t count;
  j.list = weir_yaml_get(e->value, "addresses");
  if (j.list != NULL) WEIR_TRY(expect_list(r, j.list));
  if (j.list != NULL) j.tasks = task_count(j.list->count);
  if (tasks != NULL && !weir_yaml_int(tasks, &count))
    return bad(r, &tasks->mark, "expected a number of tasks", e->key);
  if (tasks != NULL && j.list != NULL && count != j.list->count)
    return bad(r, &tasks->mark, "as many tasks as addresses are expected",
               e->key);
  if (tasks != NULL) j.tasks = task_count(count);
  return add_job(r, &j, &e->key_mark);
}

static weir_status read_key(reader *r, const weir_yaml_entry *e) {
  const weir_yaml *v = e->value;
  int64_t count;
  if (weir_sv_starts_with(e->key, "x-")) return WEIR_OK;
  if (weir_sv_is(e->key, "insecure"))
    return weir_yaml_bool(v, &r->c->insecure)
               ? WEIR_OK
               : bad(r, &v->mark, "expected true or false", e->key);
  if (weir_sv_is(e->key, "tls"))
    return weir_cluster_tls_read(v, &r->c->arena, &r->c->tls, r->err);
  if (weir_sv_is(e->key, "devices")) return read_models(r, v);
  if (weir_sv_is(e->key, "network")) return read_link(r, v, &r->c->network);
  if (weir_sv_is(e->key, "local")) return read_local(r, v);
  bool is_name = weir_device_kind_find(e->key) != WEIR_DEVICE_ANY ||
                 weir_sv_is(e->key, "threads");
  if (v->kind == WEIR_YAML_LIST && !is_name)
    return add_job(
        r, &(job){.name = e->key, .tasks = task_count(v->count), .list = v},
        &e->key_mark);
  if (v->kind == WEIR_YAML_MAP && !is_name) return read_job(r, e);
  if (!weir_yaml_int(v, &count))
    return bad(r, &v->mark,
               is_name ? "expected a number"
                       : "expected a number of tasks or a list of addresses",
               e->key);
  return read_count(r, e->key, count, &e->key_mark, &v->mark);
}

/* ---- Devices */

/* The keys of a job or a task over |m|; |task|: `address`, else the job's. */
static weir_status read_shape(reader *r, const weir_yaml *y, bool task,
                              weir_machine *m) {
  for (uint32_t i = 0; y != NULL && i < y->count; i++) {
    const weir_yaml_entry *e = &y->entries[i];
    bool known =
        weir_sv_starts_with(e->key, "x-") ||
        (task ? weir_sv_is(e->key, "address")
              : weir_sv_is(e->key, "tasks") || weir_sv_is(e->key, "addresses"));
    if (known) continue;
    WEIR_TRY(weir_machine_read_key(e, m, &known, r->err));
    if (!known)
      return bad(r, &e->key_mark,
                 task ? "no such key of a task, expected address, cpu or gpu"
                      : "no such key of a job, expected tasks, addresses, cpu "
                        "or gpu",
                 e->key);
  }
  return WEIR_OK;
}

/* The machine of task |index| of job |j|. */
static weir_status read_machine(reader *r, const job *j, uint32_t index,
                                weir_machine *out) {
  *out = r->machine;
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
    if (weir_device_kinds[k]->workers_only && r->job_count > 1 &&
        !weir_sv_is(j->name, "worker"))
      out->parts[k].count = 0;
  WEIR_TRY(read_shape(r, j->shape, false, out));
  const weir_yaml *own = j->list == NULL ? NULL : j->list->items[index];
  return own != NULL && own->kind == WEIR_YAML_MAP
             ? read_shape(r, own, true, out)
             : WEIR_OK;
}

/* The class of devices like |part|; the first ones are the section's. */
static weir_status find_class(reader *r, int kind,
                              const weir_machine_part *part, uint32_t *out) {
  weir_cluster *c = r->c;
  weir_device_model m = weir_machine_model(part);
  for (*out = 0; *out < c->class_count; ++*out) {
    const weir_cluster_class *k = &c->classes[*out];
    if ((int)k->kind == kind && k->threads == part->threads &&
        k->model.mflops == m.mflops &&
        k->model.bytes_per_us == m.bytes_per_us &&
        k->model.overhead_ns == m.overhead_ns)
      return WEIR_OK;
  }
  if (c->class_count == WEIR_PLACE_CLASSES)
    return bad(r, NULL, "more than 62 devices with figures of their own", none);
  c->classes[c->class_count++] = (weir_cluster_class){
      .kind = (weir_device_kind)kind, .threads = part->threads, .model = m};
  return WEIR_OK;
}

/* A device to be added. */
typedef struct place_of {
  const job *job;
  uint32_t index, number; /* of its task, of the device there */
  int kind;
} place_of;

static weir_status add_device(reader *r, weir_cluster_device *d,
                              const place_of *at,
                              const weir_machine_part *part) {
  weir_cluster *c = r->c;
  char text[160];
  WEIR_TRY(find_class(r, at->kind, part, &d->cls));
  d->name = weir_device_name_any();
  memcpy(d->name.job, at->job->name.data, at->job->name.size);
  d->name.task = (weir_index_range){(int32_t)at->index, (int32_t)at->index};
  d->name.type = (weir_device_kind)at->kind;
  d->name.index = (weir_index_range){(int32_t)at->number, (int32_t)at->number};
  weir_device_name_print(&d->name, text, sizeof text);
  d->text =
      (weir_sv){weir_arena_string(&c->arena, text, strlen(text)), strlen(text)};
  d->task = c->task_count;
  d->memory_bytes = part->model.memory_bytes;
  d->memory_given = part->memory_given;
  d->in_turns = part->in_turns;
  c->kind_count[at->kind]++;
  c->classes[d->cls].count++;
  return d->text.data != NULL ? WEIR_OK : weir_fail_memory(r->err, 64);
}

static weir_sv keep_text(weir_cluster *c, weir_sv text, bool *ok) {
  const char *copy = weir_arena_string(&c->arena, text.data, text.size);
  *ok &= copy != NULL;
  return (weir_sv){copy, text.size};
}

/* The address of task |index|; empty: none is given. */
static weir_sv address_of(const job *j, uint32_t index) {
  const weir_yaml *y = j->list == NULL ? NULL : j->list->items[index];
  if (y != NULL && y->kind == WEIR_YAML_MAP) y = weir_yaml_get(y, "address");
  return y != NULL && y->kind == WEIR_YAML_SCALAR ? y->text : none;
}

static weir_status add_task(reader *r, weir_cluster_task *tasks,
                            weir_cluster_device *devices, const job *j,
                            uint32_t i) {
  weir_cluster *c = r->c;
  weir_cluster_task *t = &tasks[c->task_count];
  weir_machine m;
  bool ok = true;
  WEIR_TRY(read_machine(r, j, i, &m));
  t->job = keep_text(c, j->name, &ok);
  t->index = i;
  weir_sv address = address_of(j, i);
  if (address.size > 0) t->address = keep_text(c, address, &ok);
  if (!ok) return weir_fail_memory(r->err, 64);
  t->first_device = c->device_count;
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
    for (uint32_t d = 0; d < m.parts[k].count; d++)
      WEIR_TRY(add_device(r, &devices[c->device_count++],
                          &(place_of){j, i, d, k}, &m.parts[k]));
  t->device_count = c->device_count - t->first_device;
  c->task_count++;
  return WEIR_OK;
}

static weir_status count_devices(reader *r, size_t *tasks, size_t *devices) {
  *tasks = *devices = 0;
  for (uint32_t j = 0; j < r->job_count; j++)
    for (uint32_t i = 0; i < r->jobs[j].tasks; i++) {
      weir_machine m;
      WEIR_TRY(read_machine(r, &r->jobs[j], i, &m));
      ++*tasks;
      for (int k = 0; k < WEIR_DEVICE_KINDS; k++) *devices += m.parts[k].count;
    }
  return WEIR_OK;
}

static weir_status make_devices(reader *r) {
  weir_cluster *c = r->c;
  size_t tasks, devices;
  WEIR_TRY(count_devices(r, &tasks, &devices));
  if (tasks == 0 || devices == 0) return bad(r, NULL, "it has no device", none);
  if (devices > WEIR_PLACE_DEVICES)
    return bad(r, NULL, "more than 1024 devices", none);
  weir_cluster_task *t = weir_arena_array(&c->arena, tasks, sizeof *t);
  weir_cluster_device *d = weir_arena_array(&c->arena, devices, sizeof *d);
  if (t == NULL || d == NULL)
    return weir_fail_memory(r->err, devices * sizeof *d);
  c->tasks = t;
  c->devices = d;
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
    c->classes[c->class_count++] =
        (weir_cluster_class){.kind = (weir_device_kind)k,
                             .threads = r->machine.parts[k].threads,
                             .model = weir_machine_model(&r->machine.parts[k])};
  for (uint32_t j = 0; j < r->job_count; j++)
    for (uint32_t i = 0; i < r->jobs[j].tasks; i++)
      WEIR_TRY(add_task(r, t, d, &r->jobs[j], i));
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
    s = read_key(&r, &section->entries[i]);
    if (s == WEIR_OK) s = weir_cluster_check_addresses(section, i, err);
  }
  const weir_yaml *tls = weir_yaml_get(section, "tls");
  if (s == WEIR_OK && tls != NULL && r.c->insecure)
    s = bad(&r, &tls->mark, "`tls` and `insecure: true` exclude each other",
            none);
  return end(&r, s, out_cluster);
}

/* The kind whose |what| ("_memory") |key| is; ANY: it is something else. */
static weir_device_kind kind_in(weir_sv key, const char *what) {
  size_t n = strlen(what);
  if (key.size <= n || memcmp(key.data + key.size - n, what, n) != 0)
    return WEIR_DEVICE_ANY;
  return weir_device_kind_find((weir_sv){key.data, key.size - n});
}

static weir_status read_pair(reader *r, weir_sv pair) {
  const char *equals = memchr(pair.data, '=', pair.size);
  int64_t count;
  if (equals == NULL) return bad(r, NULL, "expected NAME=NUMBER", pair);
  weir_sv key = {pair.data, (size_t)(equals - pair.data)};
  weir_sv value = {equals + 1, pair.size - key.size - 1};
  weir_device_kind kind = kind_in(key, "_memory");
  if (kind != WEIR_DEVICE_ANY)
    return weir_machine_set_memory(&r->machine.parts[kind], value, NULL,
                                   r->err);
  kind = kind_in(key, "_share");
  if (kind != WEIR_DEVICE_ANY)
    return weir_machine_set_share(&r->machine.parts[kind], kind, value, NULL,
                                  r->err);
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

/* Within a task the measured one, or the slower of the two devices' ways. */
static weir_place_link way_between(const weir_cluster *c,
                                   const weir_cluster_device *from,
                                   const weir_cluster_device *to) {
  if ((from->task == to->task || c->one_process) &&
      c->known[from->name.type][to->name.type])
    return c->way[from->name.type][to->name.type];
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
        b, &(weir_place_device){v->text, v->cls, v->memory_bytes});
  }
  for (uint32_t i = 0; i < c->device_count; i++)
    for (uint32_t k = 0; k < c->device_count; k++) {
      if (i == k) continue;
      weir_place_link way = way_between(c, &c->devices[i], &c->devices[k]);
      weir_place_connect(b, i, k, weir_place_add_link(b, &way));
    }
}
