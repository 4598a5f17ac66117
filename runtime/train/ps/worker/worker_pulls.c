/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/worker/worker_pulls.h"

/* Answers to older requests are received at one place, which is made for the
 * first of them. A link delivers in order, so it cannot refuse them. */

weir_status weir_worker_pulls_init(weir_worker_pulls *pulls,
                                   const weir_ps_job *job,
                                   const weir_worker_compute *compute,
                                   weir_error *err) {
  uint32_t servers = job->config.servers;
  pulls->scratch_bytes = 1;
  pulls->items = weir_alloc_array(pulls->alloc, servers, sizeof *pulls->items);
  if (pulls->items == NULL) return weir_fail_memory(err, servers);
  pulls->count = servers;
  for (uint32_t i = 0; i < servers; i++) {
    weir_worker_pull *p = &pulls->items[i];
    p->pieces = weir_worker_compute_pulls(compute, i, &p->count);
    p->changing = job->servers[i].changing_count;
    p->aside = weir_alloc_array(pulls->alloc, p->count, sizeof *p->aside);
    if (p->aside == NULL) return weir_fail_memory(err, p->count);
    for (uint32_t k = 0; k < p->count; k++)
      if (p->pieces[k].bytes > pulls->scratch_bytes)
        pulls->scratch_bytes = p->pieces[k].bytes;
  }
  return WEIR_OK;
}

void weir_worker_pulls_release(weir_worker_pulls *pulls) {
  for (uint32_t i = 0; i < pulls->count; i++)
    weir_free(pulls->alloc, pulls->items[i].aside);
  weir_free(pulls->alloc, pulls->items);
  weir_free(pulls->alloc, pulls->scratch);
  pulls->items = NULL;
  pulls->scratch = NULL;
  pulls->count = 0;
}

weir_worker_pull *weir_worker_pulls_of(const weir_worker_pulls *pulls,
                                       weir_ps_task from,
                                       const weir_ps_message *m) {
  bool has = m->kind == WEIR_PS_PULLED ||
             (m->kind == WEIR_PS_PUSHED && m->newer); /* with the next pull */
  if (!has || from.role != WEIR_PS_SERVER || from.index >= pulls->count)
    return NULL;
  return &pulls->items[from.index];
}

static weir_status set_aside(weir_worker_pulls *pulls,
                             const weir_worker_pull *p, weir_error *err) {
  if (pulls->scratch == NULL) {
    pulls->scratch = weir_alloc_aligned(pulls->alloc, pulls->scratch_bytes, 64);
    if (pulls->scratch == NULL)
      return weir_fail_memory(err, pulls->scratch_bytes);
  }
  for (uint32_t i = 0; i < p->count; i++)
    p->aside[i] = (weir_ps_piece){pulls->scratch, p->pieces[i].bytes};
  return WEIR_OK;
}

weir_status weir_worker_pulls_place(weir_worker_pulls *pulls,
                                    weir_worker_pull *p,
                                    const weir_ps_message *m,
                                    weir_ps_place *out, weir_error *err) {
  *out = (weir_ps_place){.pieces = p->pieces,
                         .count = m->ok ? p->count : p->changing};
  if (p->expected && p->request == m->request) {
    p->torn = true;
    out->data = p;
    return WEIR_OK;
  }
  WEIR_TRY(set_aside(pulls, p, err));
  out->pieces = p->aside;
  return WEIR_OK;
}
