/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_TRACE_H_
#define WEIR_EXEC_TRACE_H_

#include "runtime/base/sv.h"
#include "runtime/exec/session/session.h"

/* The executor's side of a trace (create, write, release: session.h).
 *
 * Events go into memory that was taken when the trace was made; adding one
 * takes no lock and allocates nothing. When it is full, later events are
 * counted and dropped. Any thread may add; write only when no run uses it. */

typedef struct weir_trace_event {
  weir_sv name;         /* node; copied, the end of a long one */
  const char *category; /* "kernel", "copy", ...: static text */
  const char *kernel;   /* static text, or NULL */
  weir_sv device;       /* of the part; lives as long as the program */
  int64_t start_ns, end_ns;
  uint64_t step;
  uint32_t node;  /* of the program's graph; WEIR_NO_INDEX: within a body */
  uint32_t part;  /* of the program */
  int thread;     /* of the pool; 0 is the caller */
  bool by_device; /* the length is by the device's own clock */
  /* The instruction, and the first part of the program whose run it was; both
   * live as long as that program. */
  const struct weir_instr *instr;
  const struct weir_program *program;
} weir_trace_event;

/* Adds a copy of |event|. */
void weir_trace_add(weir_trace *trace, const weir_trace_event *event);

/* From the next run on, instructions within bodies of loops and branches that
 * the host runs have events too; else the loop's event is all. */
void weir_trace_bodies(weir_trace *trace);
bool weir_trace_has_bodies(const weir_trace *trace);

/* Forgets all events; nothing may be adding any. */
void weir_trace_clear(weir_trace *trace);

/* Measures what tracing costs, as the least of many tries, and forgets all
 * events: a reading of the clock, which every event holds once, and the rest of
 * the time from the end of one event to the beginning of the next. */
void weir_trace_price(const weir_env *env, weir_trace *trace, int64_t *clock_ns,
                      int64_t *gap_ns);

/* How many events are held. */
size_t weir_trace_count(const weir_trace *trace);
/* Events that found no room. */
size_t weir_trace_dropped(const weir_trace *trace);
/* The i-th event held, in order of adding; its name lives in the trace. */
weir_trace_event weir_trace_event_at(const weir_trace *trace, size_t i);

/* ---- Trace: the time and thread of each instruction, in Chrome's JSON form.
 */
weir_status weir_exec_trace_create(const weir_env *env, size_t max_events,
                                   weir_trace **out_trace, weir_error *err);

void weir_exec_trace_release(weir_trace *trace); /* NULL-safe */

/* Writes the events as Chrome's JSON. Errors: W6005. */
bool weir_exec_trace_write(const weir_trace *trace, const weir_writer *out);

#endif
