/* SPDX-License-Identifier: Apache-2.0 */
/* Machines of a cluster's tasks (machine.h): counts and figures, read
 * key by key over those of the level above: kind, section, job, task. Every
 * figure has a range that keeps later sums in 64 bits; the first that is
 * outside ends the reading with its place. */
#include "placement/cluster/machine.h"

#include <stdio.h>

#include "runtime/base/quantity.h"
#include "runtime/base/yaml/yaml_scalar.h"

static const weir_sv none = {"", 0};

static weir_status bad(weir_error *err, const weir_mark *at, const char *what,
                       weir_sv text) {
  return weir_fail(err, WEIR_W3020, at, "cluster: %s%s%.*s", what,
                   text.size > 0 ? ": " : "", WEIR_SV(text));
}

weir_machine weir_machine_default(void) {
  weir_machine m = {0};
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
    m.parts[k] = (weir_machine_part){.count = weir_device_kinds[k]->per_task,
                                     .threads = 1,
                                     .model = weir_device_kinds[k]->model};
  return m;
}

weir_device_model weir_machine_model(const weir_machine_part *part) {
  weir_device_model m = part->model;
  if (part->rate_given) return m;
  if (__builtin_mul_overflow(m.mflops, (int64_t)part->threads, &m.mflops))
    m.mflops = INT64_MAX;
  return m;
}

weir_status weir_machine_set_threads(weir_machine *m, int64_t threads,
                                     const weir_mark *at, weir_error *err) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)threads);
  if (threads < 1 || threads > WEIR_MACHINE_THREADS)
    return bad(err, at, "a device has 1 to 256 threads", weir_sv_from(text));
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
    if (weir_device_kinds[k]->host) m->parts[k].threads = (uint32_t)threads;
  return WEIR_OK;
}

weir_status weir_machine_set_memory(weir_machine_part *p, weir_sv text,
                                    const weir_mark *at, weir_error *err) {
  p->memory_given = weir_quantity_bytes(text, &p->model.memory_bytes) &&
                    p->model.memory_bytes > 0;
  if (p->memory_given) return WEIR_OK;
  return bad(err, at, "a size above 0 is written 16GiB", text);
}

weir_status weir_machine_set_share(weir_machine_part *p, weir_device_kind kind,
                                   weir_sv text, const weir_mark *at,
                                   weir_error *err) {
  p->in_turns = weir_sv_is(text, "queue");
  if (!p->in_turns && !weir_sv_is(text, "memory"))
    return bad(err, at, "share is queue or memory", text);
  if (kind == WEIR_GPU) return WEIR_OK;
  return bad(err, at, "only a gpu has `share`",
             weir_sv_from(weir_device_kinds[kind]->name));
}

/* ---- Keys of a kind */

static weir_status read_threads(const weir_yaml_entry *e, weir_device_kind kind,
                                weir_machine_part *p, weir_error *err) {
  int64_t threads;
  if (!weir_device_kinds[kind]->host)
    return bad(err, &e->key_mark, "its kernels take no threads of the host",
               weir_sv_from(weir_device_kinds[kind]->name));
  if (!weir_yaml_int(e->value, &threads) || threads < 1 ||
      threads > WEIR_MACHINE_THREADS)
    return bad(err, &e->value->mark, "a device has 1 to 256 threads",
               e->value->kind == WEIR_YAML_SCALAR ? e->value->text : none);
  p->threads = (uint32_t)threads;
  return WEIR_OK;
}

static weir_status read_number_of(const weir_yaml *y, weir_machine_part *p,
                                  weir_error *err) {
  int64_t count;
  if (!weir_yaml_int(y, &count) || count < 0 || count > 64)
    return bad(err, &y->mark, "a task has 0 to 64 devices of a kind",
               y->kind == WEIR_YAML_SCALAR ? y->text : none);
  p->count = (uint32_t)count;
  return WEIR_OK;
}

static weir_status read_gflops(const weir_yaml_entry *e, weir_sv text,
                               weir_machine_part *p, weir_error *err) {
  double number;
  if (!weir_text_float(text, &number) || !(number >= 0.001 && number < 1e12))
    return bad(err, &e->value->mark, "gflops is a number above 0", text);
  p->model.mflops = (int64_t)(number * 1000);
  p->rate_given = true;
  return WEIR_OK;
}

static weir_status no_such_figure(const weir_yaml_entry *e, bool counts,
                                  weir_error *err) {
  return bad(err, &e->key_mark,
             counts ? "no such key, expected count, memory, gflops, "
                      "bandwidth, overhead, threads or share"
                    : "no such key, expected memory, gflops, bandwidth, "
                      "overhead, threads or share",
             e->key);
}

static weir_status read_figure(const weir_yaml_entry *e, weir_device_kind kind,
                               bool counts, weir_machine_part *p,
                               weir_error *err) {
  const weir_yaml *v = e->value;
  weir_sv text = v->kind == WEIR_YAML_SCALAR ? v->text : none;
  if (weir_sv_starts_with(e->key, "x-")) return WEIR_OK;
  if (weir_sv_is(e->key, "memory"))
    return weir_machine_set_memory(p, text, &v->mark, err);
  if (weir_sv_is(e->key, "bandwidth")) {
    if (weir_quantity_rate(text, &p->model.bytes_per_us)) return WEIR_OK;
    return bad(err, &v->mark, "a rate is written 20GB/s", text);
  }
  if (weir_sv_is(e->key, "overhead")) {
    if (weir_quantity_time(text, &p->model.overhead_ns)) return WEIR_OK;
    return bad(err, &v->mark, "a time is written 2us", text);
  }
  if (weir_sv_is(e->key, "gflops")) return read_gflops(e, text, p, err);
  if (weir_sv_is(e->key, "share"))
    return weir_machine_set_share(p, kind, text, &v->mark, err);
  if (weir_sv_is(e->key, "threads")) return read_threads(e, kind, p, err);
  if (counts && weir_sv_is(e->key, "count")) return read_number_of(v, p, err);
  return no_such_figure(e, counts, err);
}

weir_status weir_machine_read_part(const weir_yaml *y, weir_device_kind kind,
                                   bool counts, weir_machine_part *p,
                                   weir_error *err) {
  if (y->kind != WEIR_YAML_MAP)
    return bad(err, &y->mark, "expected {memory:, gflops:, ...}", none);
  for (uint32_t i = 0; i < y->count; i++)
    WEIR_TRY(read_figure(&y->entries[i], kind, counts, p, err));
  return WEIR_OK;
}

weir_status weir_machine_read_key(const weir_yaml_entry *e, weir_machine *m,
                                  bool *known, weir_error *err) {
  weir_device_kind kind = weir_device_kind_find(e->key);
  *known = kind != WEIR_DEVICE_ANY;
  if (!*known) return WEIR_OK;
  weir_machine_part *p = &m->parts[kind];
  if (e->value->kind == WEIR_YAML_SCALAR)
    return read_number_of(e->value, p, err);
  if (!weir_device_kinds[kind]->per_task && p->count == 0) p->count = 1;
  return weir_machine_read_part(e->value, kind, true, p, err);
}
