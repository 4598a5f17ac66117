/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session_run.h"

#include <stdio.h>
#include <string.h>

#include "runtime/exec/gpu/gpu_memory.h"
#include "runtime/exec/gpu/gpu_tensor.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/run.h"
#include "runtime/exec/session/session_call.h"
#include "runtime/exec/session/session_internal.h"
#include "runtime/exec/session/session_mesh.h"
#include "runtime/exec/session/session_remote.h"
#include "runtime/exec/session/session_vars.h"

/* Runs by value id: look up, run once, hand out. */

enum { kBufferAlign = 64 }; /* of a device's buffers: device.h */

/* Asks the caller and the tasks, which may refuse a step that ran. Rare, and
 * apart so that the usual step is two tests. */
static __attribute__((noinline)) weir_status accept_step(
    weir_exec_session *session, const weir_cached *cached,
    const weir_run_options *options, weir_error *err) {
  weir_status s = WEIR_OK;
  if (options != NULL && options->accept != NULL)
    s = options->accept(options->accept_self, err);
  if (cached->remote != NULL)
    s = weir_session_remote_decide(session, cached, s, err);
  return s;
}

weir_status weir_session_step(weir_exec_session *session,
                              const weir_cached *cached, weir_frame *frame,
                              weir_var_buffer **held,
                              const weir_run_options *options,
                              weir_error *err) {
  bool writes = cached->compiled->writes;
  const weir_gpu_stop stop = {options != NULL ? options->cancel : NULL,
                              options != NULL ? options->deadline_ns : 0};
  if (writes) weir_turn_wait(&session->turn);
  const weir_gpu_stop *before = weir_gpu_stop_set(&stop);
  weir_status s = weir_session_vars_begin(session, cached, frame, held, err);
  weir_gpu_stop_set(before);
  if (s == WEIR_OK) {
    s = weir_frame_run(frame, session->pool, options, err);
    if (s == WEIR_OK && ((options != NULL && options->accept != NULL) ||
                         cached->remote != NULL))
      s = accept_step(session, cached, options, err);
    weir_session_vars_end(session, cached, held, s == WEIR_OK);
  }
  if (writes) weir_turn_give(&session->turn);
  return s;
}

/* The part that makes fetch |k|; NULL: it is another task's. */
static const weir_program *maker(const weir_cached *cached, uint32_t k) {
  const weir_program *p = cached->compiled->program;
  while (p != NULL && p->fetches[k] == WEIR_NO_INDEX) p = p->next_part;
  return p;
}

bool weir_session_fetch_elsewhere(const weir_cached *cached, uint32_t k) {
  return maker(cached, k) == NULL;
}

/* A tensor that may be written over is where the value comes. Kernels count on
 * the alignment that a device's buffers have. */
static weir_status check_place(const weir_tensor *t, const weir_exec_gpu *gpu,
                               uint32_t k, weir_error *err) {
  char on[32] = "the host", wanted[32] = "the host";
  if (gpu != NULL) snprintf(wanted, sizeof wanted, "GPU %d", (int)gpu->index);
  if (t->on_gpu) snprintf(on, sizeof on, "GPU %d", (int)t->gpu);
  if (strcmp(on, wanted) != 0)
    return weir_fail(err, WEIR_W0004, NULL,
                     "the tensor for output %u is on %s, one on %s is wanted",
                     k, on, wanted);
  if (t->on_gpu && t->bytes > 0 && (uintptr_t)t->data % kBufferAlign != 0)
    return weir_fail(err, WEIR_W0004, NULL,
                     "the tensor for output %u is on %s and not aligned to %d "
                     "bytes",
                     k, on, (int)kBufferAlign);
  return WEIR_OK;
}

weir_status weir_session_output(weir_exec_session *session,
                                const weir_cached *cached, uint32_t k,
                                weir_tensor **tensor, weir_error *err) {
  const weir_program *p = maker(cached, k);
  if (p == NULL) return WEIR_OK;
  const weir_pvalue *v = &p->values[p->fetches[k]];
  const weir_allocator *a = session->env->alloc;
  weir_exec_gpu *gpu = cached->stays[k] ? p->gpu : NULL;
  weir_shape shape = weir_shape_of(v->rank, v->dims);
  if (*tensor == NULL && gpu != NULL)
    return weir_gpu_tensor_create(gpu, a, v->dtype, &shape, tensor, err);
  if (*tensor == NULL)
    return weir_tensor_create_shaped(a, v->dtype, &shape, tensor, err);
  if ((*tensor)->dtype == v->dtype &&
      weir_shape_equal(&(*tensor)->shape, &shape) && !(*tensor)->read_only)
    return check_place(*tensor, gpu, k, err);
  char want[128], got[128];
  weir_shape_print(&shape, NULL, NULL, want, sizeof want);
  weir_shape_print(&(*tensor)->shape, NULL, NULL, got, sizeof got);
  return weir_fail(err, WEIR_W0004, NULL,
                   "the tensor for output %u is %s%s%s, %s%s is wanted", k,
                   weir_dtype_name((*tensor)->dtype), got,
                   (*tensor)->read_only ? " (read-only)" : "",
                   weir_dtype_name(v->dtype), want);
}

static weir_status run(weir_exec_session *session,
                       const weir_exec_request *request, bool unplaced,
                       weir_error *err);

/* ---- Defaults of a placed program */

weir_status weir_session_compute(weir_exec_session *session,
                                 const weir_wanted *wanted,
                                 const weir_run_options *options,
                                 weir_tensor **out, weir_error *err) {
  const weir_allocator *a = session->env->alloc;
  uint32_t count = wanted->fetch_count;
  weir_exec_fetch *fetches = weir_alloc_array(a, count, sizeof *fetches);
  if (fetches == NULL) return weir_fail_memory(err, count * sizeof *fetches);
  weir_run_options quiet = {0};
  weir_exec_request own = {.feeds = wanted->feeds,
                           .feed_count = wanted->feed_count,
                           .fetches = fetches,
                           .fetch_count = count,
                           .options = &quiet};
  if (options != NULL)
    quiet = (weir_run_options){.deadline_ns = options->deadline_ns,
                               .cancel = options->cancel,
                               .step = options->step,
                               .trap_nan = options->trap_nan};
  for (uint32_t k = 0; k < count; k++) fetches[k].value = wanted->fetches[k];
  weir_status s = run(session, &own, true, err);
  for (uint32_t k = 0; k < count; k++) {
    out[k] = NULL;
    if (s == WEIR_OK)
      out[k] = fetches[k].tensor;
    else
      weir_tensor_unref(fetches[k].tensor);
  }
  weir_free(a, fetches);
  return s;
}

/* ---- The whole */

static weir_status run_whole(weir_exec_session *session,
                             const weir_exec_request *request, bool unplaced,
                             weir_error *err) {
  weir_session_call c;
  weir_status s = weir_session_call_open(&c, session, request, unplaced, err);
  if (s == WEIR_OK) {
    s = weir_session_step(session, c.cached, c.frame, c.held, request->options,
                          err);
    weir_session_call_deliver(&c);
  } else {
    weir_session_call_fail(&c, s, err);
  }
  weir_session_call_close(&c);
  return s;
}

/* The run's end is that of its waits. */
static weir_status run(weir_exec_session *session,
                       const weir_exec_request *request, bool unplaced,
                       weir_error *err) {
  const weir_run_options *o = request->options;
  const weir_gpu_stop stop = {o != NULL ? o->cancel : NULL,
                              o != NULL ? o->deadline_ns : 0};
  const weir_gpu_stop *before = weir_gpu_stop_set(&stop);
  weir_status s = run_whole(session, request, unplaced, err);
  weir_gpu_stop_set(before);
  return s;
}

weir_status weir_exec_run(weir_exec_session *session,
                          const weir_exec_request *request, weir_error *err) {
  if (session->mesh != NULL)
    return weir_session_mesh_run(session, request, NULL, err);
  return weir_session_own_run(session, request, err);
}

weir_status weir_session_own_run(weir_exec_session *session,
                                 const weir_exec_request *request,
                                 weir_error *err) {
  return run(session, request, false, err);
}
