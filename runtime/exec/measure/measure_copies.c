/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/measure/measure_copies.h"

#include "runtime/exec/program/instr_gpu.h"

/* Copies of a plan from events of a trace. The event of a send has its device
 * but not the receiver's; that of a receive has its device, but begins long
 * before the bytes come. So a copy begins with the earliest send of its unit's
 * values, and ends with the last receive of them on the copy's device. A GPU
 * that sends copies to the host first, and one that receives from it last: then
 * the copy begins or ends with that. Copies
 * of one unit are a list, so an event costs O(copies of its unit). */

void weir_copies_forget(weir_copy_finder *f) {
  for (uint32_t k = 0; f->plan != NULL && k < f->out->copy_count; k++)
    f->begin_ns[k] = f->end_ns[k] = -1;
}

static weir_status make_room(weir_copy_finder *f, uint32_t runs,
                             weir_error *err) {
  const weir_allocator *a = f->alloc;
  weir_measured *out = f->out;
  size_t copies = (size_t)out->copy_count + 1;
  size_t units = (size_t)f->problem->node_count + 1;
  out->copies = weir_alloc_array(a, copies, sizeof *out->copies);
  out->copy_samples =
      weir_alloc_array(a, copies * runs, sizeof *out->copy_samples);
  out->copy_start_ns = weir_alloc_array(a, copies, sizeof *out->copy_start_ns);
  out->copy_end_ns = weir_alloc_array(a, copies, sizeof *out->copy_end_ns);
  f->first = weir_alloc_array(a, units, sizeof *f->first);
  f->next = weir_alloc_array(a, copies, sizeof *f->next);
  f->begin_ns = weir_alloc_array(a, copies, sizeof *f->begin_ns);
  f->end_ns = weir_alloc_array(a, copies, sizeof *f->end_ns);
  if (out->copies == NULL || out->copy_samples == NULL ||
      out->copy_start_ns == NULL || out->copy_end_ns == NULL ||
      f->first == NULL || f->next == NULL || f->begin_ns == NULL ||
      f->end_ns == NULL)
    return weir_fail_memory(err, copies * runs * sizeof(int64_t));
  memset(f->first, 0xff, units * sizeof *f->first);
  for (uint32_t k = 0; k < out->copy_count; k++) {
    uint32_t unit = f->problem->tensor_node[f->plan->copies[k].tensor];
    f->next[k] = f->first[unit];
    f->first[unit] = k;
    out->copy_start_ns[k] = out->copy_end_ns[k] = -1;
  }
  return WEIR_OK;
}

weir_status weir_copies_begin(weir_copy_finder *f, const weir_allocator *alloc,
                              const weir_measure_request *request,
                              uint32_t runs, weir_measured *out,
                              weir_error *err) {
  *f = (weir_copy_finder){
      .alloc = alloc,
      .plan = request->plan == NULL ? NULL : request->plan->result.plan,
      .problem = request->placement->problem,
      .out = out};
  if (f->plan == NULL) return WEIR_OK;
  out->copy_count = f->plan->copy_count;
  WEIR_TRY(make_room(f, runs, err));
  weir_copies_forget(f);
  return WEIR_OK;
}

void weir_copies_end(weir_copy_finder *f) {
  if (f->alloc == NULL) return;
  weir_free(f->alloc, f->first);
  weir_free(f->alloc, f->next);
  weir_free(f->alloc, f->begin_ns);
  weir_free(f->alloc, f->end_ns);
}

/* Whether |e| is a |category|, or the copy called |kernel| of a GPU's part. */
static bool is_end(const weir_trace_event *e, const char *category,
                   const char *kernel) {
  return strcmp(e->category, category) == 0 ||
         (e->by_device && strcmp(e->category, "copy") == 0 &&
          strcmp(e->kernel, kernel) == 0);
}

static bool is_send(const weir_trace_event *e) {
  return is_end(e, "send", WEIR_GPU_COPY_OUT);
}

bool weir_copies_is(const weir_trace_event *e) {
  return is_send(e) || is_end(e, "recv", WEIR_GPU_COPY_IN);
}

bool weir_copies_take(weir_copy_finder *f, const weir_trace_event *e,
                      uint32_t unit) {
  if (!weir_copies_is(e)) return false;
  if (f->plan == NULL || unit == WEIR_PLACE_NONE) return true;
  bool send = is_send(e);
  for (uint32_t k = f->first[unit]; k != WEIR_PLACE_NONE; k = f->next[k]) {
    const weir_place_copy *c = &f->plan->copies[k];
    if (send && (f->begin_ns[k] < 0 || e->start_ns < f->begin_ns[k]))
      f->begin_ns[k] = e->start_ns;
    if (!send && e->end_ns > f->end_ns[k] &&
        weir_sv_equal(f->problem->devices[c->to].name, e->device))
      f->end_ns[k] = e->end_ns;
  }
  return true;
}

void weir_copies_keep(weir_copy_finder *f, uint32_t run) {
  weir_measured *out = f->out;
  for (uint32_t k = 0; f->plan != NULL && k < out->copy_count; k++) {
    bool both = f->begin_ns[k] >= 0 && f->end_ns[k] >= f->begin_ns[k];
    out->copy_samples[(size_t)run * out->copy_count + k] =
        both ? f->end_ns[k] - f->begin_ns[k] : 0;
  }
}

void weir_copies_keep_times(weir_copy_finder *f, int64_t begin_ns) {
  weir_measured *out = f->out;
  for (uint32_t k = 0; f->plan != NULL && k < out->copy_count; k++) {
    bool both = f->begin_ns[k] >= 0 && f->end_ns[k] >= f->begin_ns[k];
    out->copy_start_ns[k] = both ? f->begin_ns[k] - begin_ns : -1;
    out->copy_end_ns[k] = both ? f->end_ns[k] - begin_ns : -1;
  }
}
