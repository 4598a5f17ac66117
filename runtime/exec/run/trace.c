/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/run/trace.h"

#include <assert.h>

#include "runtime/base/json/json_trace.h"
#include "runtime/base/size.h"

/* An array of slots and a counter. An event gets its slot by one atomic
 * addition, so no slot has two writers and no lock is needed; numbers past the
 * end count the events dropped. Readers come after the run, whose end orders
 * them behind all writers. A slot is 176 bytes, 18 MB for the default. */

enum { kNameBytes = 72, kDefaultEvents = 100000 };

typedef struct slot {
  weir_trace_event event;
  char name[kNameBytes];
} slot;

struct weir_trace {
  const weir_allocator *alloc;
  size_t capacity;
  bool bodies;
  atomic_size_t next; /* counts dropped events too */
  slot slots[];
};

weir_status weir_exec_trace_create(const weir_env *env, size_t max_events,
                                   weir_trace **out_trace, weir_error *err) {
  size_t bytes = 0;
  *out_trace = NULL;
  if (max_events == 0) max_events = kDefaultEvents;
  weir_trace *trace = NULL;
  if (weir_size_mul(max_events, sizeof(slot), &bytes) &&
      weir_size_add(bytes, sizeof *trace, &bytes))
    trace = weir_alloc(env->alloc, bytes);
  if (trace == NULL) return weir_fail_memory(err, bytes);
  trace->alloc = env->alloc;
  trace->capacity = max_events;
  trace->bodies = false;
  atomic_init(&trace->next, 0);
  *out_trace = trace;
  return WEIR_OK;
}

void weir_exec_trace_release(weir_trace *trace) {
  if (trace != NULL) weir_free(trace->alloc, trace);
}

void weir_trace_bodies(weir_trace *trace) {
  trace->bodies = true;
}

bool weir_trace_has_bodies(const weir_trace *trace) {
  return trace->bodies;
}

void weir_trace_clear(weir_trace *trace) {
  atomic_store(&trace->next, 0);
}

void weir_trace_add(weir_trace *trace, const weir_trace_event *event) {
  size_t i = atomic_fetch_add(&trace->next, 1);
  if (i >= trace->capacity) return;
  slot *s = &trace->slots[i];
  weir_sv name = event->name;
  if (name.size > kNameBytes) { /* the end tells nodes of one scope apart */
    name.data += name.size - kNameBytes;
    name.size = kNameBytes;
  }
  s->event = *event;
  if (name.size > 0) memcpy(s->name, name.data, name.size);
  s->event.name = (weir_sv){s->name, name.size};
}

void weir_trace_price(const weir_env *env, weir_trace *trace, int64_t *clock_ns,
                      int64_t *gap_ns) {
  const weir_trace_event event = {.name = WEIR_SV_LIT("layer0/name"),
                                  .category = "kernel"};
  const weir_clock *clock = env->clock;
  *clock_ns = *gap_ns = INT64_MAX;
  for (int i = 0; i < 200; i++) {
    int64_t begin = clock->now_ns(clock->self);
    int64_t middle = clock->now_ns(clock->self);
    weir_trace_clear(trace);
    weir_trace_add(trace, &event);
    int64_t end = clock->now_ns(clock->self);
    if (middle - begin < *clock_ns) *clock_ns = middle - begin;
    if (end - middle < *gap_ns) *gap_ns = end - middle;
  }
  weir_trace_clear(trace);
}

size_t weir_trace_count(const weir_trace *trace) {
  size_t n = atomic_load(&trace->next);
  return n < trace->capacity ? n : trace->capacity;
}

size_t weir_trace_dropped(const weir_trace *trace) {
  return atomic_load(&trace->next) - weir_trace_count(trace);
}

weir_trace_event weir_trace_event_at(const weir_trace *trace, size_t i) {
  assert(i < weir_trace_count(trace));
  return trace->slots[i].event;
}

static void write_event(weir_json_writer *w, const weir_trace_event *e,
                        int64_t origin_ns) {
  weir_json_span_begin(w, &(weir_json_span){.name = e->name,
                                            .category = e->category,
                                            .process = e->part,
                                            .lane = e->thread,
                                            .start_ns = e->start_ns - origin_ns,
                                            .end_ns = e->end_ns - origin_ns});
  weir_json_key(w, "args");
  weir_json_object_begin(w, true);
  weir_json_key_uint(w, "step", e->step);
  if (e->device.size > 0) {
    weir_json_key_text(w, "device", e->device);
  }
  if (e->kernel != NULL) {
    weir_json_key_text(w, "kernel", weir_sv_from(e->kernel));
  }
  weir_json_object_end(w);
  weir_json_object_end(w);
}

bool weir_exec_trace_write(const weir_trace *trace, const weir_writer *out) {
  size_t count = weir_trace_count(trace);
  int64_t origin_ns = INT64_MAX;
  for (size_t i = 0; i < count; i++)
    if (trace->slots[i].event.start_ns < origin_ns)
      origin_ns = trace->slots[i].event.start_ns;
  weir_json_writer w;
  weir_json_writer_init(&w, *out, 1);
  weir_json_object_begin(&w, false);
  weir_json_key_text(&w, "displayTimeUnit", WEIR_SV_LIT("ns"));
  weir_json_key(&w, "otherData");
  weir_json_object_begin(&w, true);
  weir_json_key_uint(&w, "dropped_events", weir_trace_dropped(trace));
  weir_json_object_end(&w);
  weir_json_key(&w, "traceEvents");
  weir_json_array_begin(&w, false);
  for (size_t i = 0; i < count; i++)
    write_event(&w, &trace->slots[i].event, origin_ns);
  weir_json_array_end(&w);
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}
