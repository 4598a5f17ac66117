/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a cluster: parsed from one line, then carried out on a copy.
 *
 * A cluster is immutable and may be in use, so a changed one is built anew,
 * task by task; put_device is the one place that drops, keeps or alters a
 * device. Numbers of devices that stay are kept, so a plan for the old cluster
 * can be carried over by name (place_what_if.c). */
#include "placement/what_if.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/quantity.h"
#include "runtime/base/yaml/yaml_scalar.h"

static weir_status bad(const weir_what_if *c, const char *what,
                       weir_error *err) {
  weir_status s = weir_fail(err, WEIR_W3040, NULL, "what if '%.*s': %s",
                            WEIR_SV(c->text), what);
  weir_hint(err,
            "pin NODE=DEVICE | add JOB | add KIND:JOB (cpu:worker) | remove "
            "DEVICE | memory DEVICE=BYTES | memory DEVICE*FACTOR | link "
            "network=LATENCY,BANDWIDTH | link network*FACTOR | link local...");
  return s;
}

/* ---- Reading */

/* Splits |text| at its first |at|; false: it has none. */
static bool split(weir_sv text, char at, weir_sv *before, weir_sv *after) {
  const char *p = text.size == 0 ? NULL : memchr(text.data, at, text.size);
  if (p == NULL) return false;
  *before = (weir_sv){text.data, (size_t)(p - text.data)};
  *after = (weir_sv){p + 1, text.size - before->size - 1};
  return true;
}

static weir_sv trim(weir_sv text) {
  while (text.size > 0 && text.data[0] == ' ') {
    text.data++;
    text.size--;
  }
  while (text.size > 0 && text.data[text.size - 1] == ' ') text.size--;
  return text;
}

static weir_status read_device(weir_what_if *c, weir_sv text, weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  if (text.size > 0 &&
      weir_device_name_parse(text, &c->device, NULL, &why) == WEIR_OK)
    return WEIR_OK;
  return bad(c,
             "a device is written /job:worker/task:0/device:CPU:0, parts "
             "may be left out",
             err);
}

static weir_status read_factor(weir_what_if *c, weir_sv text, weir_error *err) {
  if (weir_text_float(text, &c->factor) && c->factor >= 1e-6 &&
      c->factor <= 1e6)
    return WEIR_OK;
  return bad(c, "a factor is a number above 0, as 0.5", err);
}

static weir_status read_pin(weir_what_if *c, weir_sv rest, weir_error *err) {
  weir_sv device;
  if (!split(rest, '=', &c->node, &device) || c->node.size == 0)
    return bad(c, "expected NODE=DEVICE", err);
  c->node = trim(c->node);
  return read_device(c, trim(device), err);
}

static weir_status bad_kind(const weir_what_if *c, weir_error *err) {
  char names[128], what[192];
  snprintf(what, sizeof what, "a device is KIND:JOB, where KIND is %s",
           weir_device_kind_names(names, sizeof names));
  return bad(c, what, err);
}

static weir_status read_add(weir_what_if *c, weir_sv rest, weir_error *err) {
  weir_sv type;
  c->job = rest;
  if (split(rest, ':', &type, &c->job)) {
    c->kind = WEIR_WHAT_IF_ADD_DEVICE;
    c->type = weir_device_kind_find(type);
    if (c->type == WEIR_DEVICE_ANY) return bad_kind(c, err);
  }
  return c->job.size == 0 ? bad(c, "expected the name of a job", err) : WEIR_OK;
}

static weir_status read_memory(weir_what_if *c, weir_sv rest, weir_error *err) {
  weir_sv device, value;
  bool times = split(rest, '*', &device, &value) &&
               memchr(rest.data, '=', rest.size) == NULL;
  if (!times && !split(rest, '=', &device, &value))
    return bad(c, "expected DEVICE=BYTES or DEVICE*FACTOR", err);
  WEIR_TRY(read_device(c, trim(device), err));
  if (times) return read_factor(c, trim(value), err);
  return weir_quantity_bytes(trim(value), &c->memory_bytes) &&
                 c->memory_bytes > 0
             ? WEIR_OK
             : bad(c, "a size above 0 is written 16GiB", err);
}

static weir_status read_link(weir_what_if *c, weir_sv rest, weir_error *err) {
  weir_sv which, value, latency, rate;
  int64_t bytes_per_us;
  bool times = split(rest, '*', &which, &value);
  if (!times && !split(rest, '=', &which, &value))
    return bad(c, "expected network=LATENCY,BANDWIDTH or network*FACTOR", err);
  which = trim(which);
  c->local = weir_sv_is(which, "local");
  if (!c->local && !weir_sv_is(which, "network"))
    return bad(c, "there are the links network and local", err);
  if (times) return read_factor(c, trim(value), err);
  if (!split(value, ',', &latency, &rate) ||
      !weir_quantity_time(trim(latency), &c->link.latency_ns) ||
      !weir_quantity_rate(trim(rate), &bytes_per_us))
    return bad(c, "a link is written 50us,1.2GB/s", err);
  c->link.fs_per_byte = weir_place_fs_per_byte(bytes_per_us);
  c->link.exclusive = true;
  return WEIR_OK;
}

weir_status weir_what_if_parse(weir_sv text, weir_what_if *c, weir_error *err) {
  weir_sv verb, rest;
  *c = (weir_what_if){.text = text, .device = weir_device_name_any()};
  if (!split(trim(text), ' ', &verb, &rest))
    return bad(c, "expected a change", err);
  rest = trim(rest);
  if (weir_sv_is(verb, "pin")) return read_pin(c, rest, err);
  c->kind = WEIR_WHAT_IF_ADD_TASK;
  if (weir_sv_is(verb, "add")) return read_add(c, rest, err);
  c->kind = WEIR_WHAT_IF_REMOVE;
  if (weir_sv_is(verb, "remove")) return read_device(c, rest, err);
  c->kind = WEIR_WHAT_IF_MEMORY;
  if (weir_sv_is(verb, "memory")) return read_memory(c, rest, err);
  c->kind = WEIR_WHAT_IF_LINK;
  if (weir_sv_is(verb, "link")) return read_link(c, rest, err);
  return bad(c, "unknown change", err);
}

/* ---- The cluster made again */

typedef struct rebuild {
  const weir_cluster *from;
  const weir_what_if *change;
  weir_cluster *to;
  weir_cluster_task *tasks;
  weir_cluster_device *devices;
  uint32_t touched; /* devices or tasks that the change concerned */
  bool uncapped;    /* a cap times a factor: some device has none */
  bool capped;      /* some device has one */
  bool no_memory;
} rebuild;

static weir_sv keep(rebuild *b, weir_sv text) {
  const char *copy = weir_arena_string(&b->to->arena, text.data, text.size);
  if (copy == NULL && text.size > 0) b->no_memory = true;
  return (weir_sv){copy, copy == NULL ? 0 : text.size};
}

static void put_device(rebuild *b, const weir_cluster_device *like,
                       int32_t task, int32_t number) {
  char text[160];
  weir_cluster_device d = *like;
  const weir_what_if *c = b->change;
  d.name.task = (weir_index_range){task, task};
  d.name.index = (weir_index_range){number, number};
  if (c->kind == WEIR_WHAT_IF_REMOVE &&
      weir_device_name_matches(&c->device, &d.name)) {
    b->touched++;
    return;
  }
  if (c->kind == WEIR_WHAT_IF_MEMORY &&
      weir_device_name_matches(&c->device, &d.name)) {
    b->touched++;
    double scaled = (double)d.memory_bytes * c->factor;
    *(d.memory_bytes == INT64_MAX ? &b->uncapped : &b->capped) = true;
    d.memory_bytes = c->factor <= 0 ? c->memory_bytes
                     : scaled >= 9e18 || d.memory_bytes == INT64_MAX
                         ? INT64_MAX
                         : (int64_t)scaled;
  }
  weir_device_name_print(&d.name, text, sizeof text);
  d.text = keep(b, weir_sv_from(text));
  d.task = b->to->task_count;
  b->to->kind_count[d.name.type]++;
  b->to->classes[d.cls].count++;
  b->devices[b->to->device_count++] = d;
}

/* One more device of the wanted type: like the task's first of that type, else
 * as the section describes the kind. */
static void put_another(rebuild *b, const weir_cluster_task *t) {
  const weir_cluster *from = b->from;
  weir_cluster_device d = from->devices[t->first_device];
  int32_t number = 0;
  d.name.type = b->change->type;
  d.cls = (uint32_t)b->change->type;
  d.memory_bytes = from->classes[d.cls].model.memory_bytes;
  for (uint32_t i = t->device_count; i-- > 0;) {
    const weir_cluster_device *other = &from->devices[t->first_device + i];
    if (other->name.type != d.name.type) continue;
    d.cls = other->cls;
    d.memory_bytes = other->memory_bytes;
    if (other->name.index.first >= number) number = other->name.index.first + 1;
  }
  b->touched++;
  put_device(b, &d, d.name.task.first, number);
}

static void put_task(rebuild *b, const weir_cluster_task *t, uint32_t index,
                     bool with_address) {
  weir_cluster_task *to = &b->tasks[b->to->task_count];
  *to = (weir_cluster_task){.job = keep(b, t->job),
                            .index = index,
                            .first_device = b->to->device_count};
  if (with_address && t->address.size > 0) to->address = keep(b, t->address);
  for (uint32_t i = 0; i < t->device_count; i++) {
    const weir_cluster_device *d = &b->from->devices[t->first_device + i];
    put_device(b, d, (int32_t)index, d->name.index.first);
  }
  if (b->change->kind == WEIR_WHAT_IF_ADD_DEVICE && t->device_count > 0 &&
      weir_sv_equal(t->job, b->change->job))
    put_another(b, t);
  to->device_count = b->to->device_count - to->first_device;
  if (to->device_count > 0) b->to->task_count++;
}

static void put_all(rebuild *b) {
  const weir_cluster_task *like = NULL;
  uint32_t index = 0;
  for (uint32_t t = 0; t < b->from->task_count; t++) {
    const weir_cluster_task *task = &b->from->tasks[t];
    put_task(b, task, task->index, true);
    if (!weir_sv_equal(task->job, b->change->job)) continue;
    if (like == NULL) like = task;
    if (task->index >= index) index = task->index + 1;
  }
  if (b->change->kind != WEIR_WHAT_IF_ADD_TASK || like == NULL) return;
  b->touched++;
  put_task(b, like, index, false);
}

static weir_status check(const rebuild *b, weir_error *err) {
  const weir_what_if *c = b->change;
  bool job =
      c->kind == WEIR_WHAT_IF_ADD_TASK || c->kind == WEIR_WHAT_IF_ADD_DEVICE;
  bool device =
      c->kind == WEIR_WHAT_IF_REMOVE || c->kind == WEIR_WHAT_IF_MEMORY;
  if (b->no_memory) return weir_fail_memory(err, 64);
  if (b->touched == 0 && job) return bad(c, "the cluster has no such job", err);
  if (b->touched == 0 && device)
    return bad(c, "the cluster has no such device", err);
  if (c->factor > 0 && b->uncapped && !b->capped)
    return bad(c,
               "no device that it names has a cap to multiply; write memory "
               "DEVICE=BYTES",
               err);
  if (b->to->device_count == 0) return bad(c, "no device would be left", err);
  if (b->to->device_count > WEIR_PLACE_DEVICES)
    return weir_fail(err, WEIR_W3020, NULL, "cluster: more than 1024 devices");
  return WEIR_OK;
}

static void set_link(weir_place_link *link, const weir_what_if *c) {
  if (c->factor <= 0)
    *link = c->link;
  else
    link->fs_per_byte = (int64_t)((double)link->fs_per_byte / c->factor);
}

static void change_link(weir_cluster *to, const weir_what_if *c) {
  if (c->kind != WEIR_WHAT_IF_LINK) return;
  if (!c->local) {
    set_link(&to->network, c);
    to->one_process = false;
    return;
  }
  for (int i = 0; i < WEIR_DEVICE_KINDS; i++) {
    set_link(&to->local[i], c);
    for (int k = 0; k < WEIR_DEVICE_KINDS; k++) set_link(&to->way[i][k], c);
  }
}

weir_status weir_cluster_change(const weir_allocator *alloc,
                                const weir_cluster *cluster,
                                const weir_what_if *change,
                                weir_cluster **out_cluster, weir_error *err) {
  rebuild b = {.from = cluster, .change = change};
  *out_cluster = NULL;
  b.to = weir_alloc_array(alloc, 1, sizeof *b.to);
  if (b.to == NULL) return weir_fail_memory(err, sizeof *b.to);
  *b.to = *cluster;
  weir_arena_init(&b.to->arena, alloc);
  b.to->task_count = b.to->device_count = 0;
  memset(b.to->kind_count, 0, sizeof b.to->kind_count);
  for (uint32_t c = 0; c < b.to->class_count; c++) b.to->classes[c].count = 0;
  change_link(b.to, change);
  size_t tasks = (size_t)cluster->task_count + 1;
  size_t devices = 2 * ((size_t)cluster->device_count + 1) + tasks;
  b.to->tasks = b.tasks =
      weir_arena_array(&b.to->arena, tasks + 1, sizeof *b.tasks);
  b.to->devices = b.devices =
      weir_arena_array(&b.to->arena, devices, sizeof *b.devices);
  weir_status s = WEIR_OK;
  if (b.tasks == NULL || b.devices == NULL)
    s = weir_fail_memory(err, devices * sizeof *b.devices);
  if (s == WEIR_OK) {
    put_all(&b);
    s = check(&b, err);
  }
  if (s == WEIR_OK)
    *out_cluster = b.to;
  else
    weir_cluster_release(b.to);
  return s;
}
