/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/server_compute.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "runtime/train/ps/norm/server_norm.h"
#include "runtime/train/ps/rows/server_rows.h"
#include "runtime/train/ps/server_values.h"

/* Updates and restores, on the thread that computes. The machine has at most
 * one update under way; a restore waits behind it, and what the update leaves
 * is then told of by an old ticket. */

/* ---- Updates */

static weir_status compute(weir_ps_host *h, weir_ps_compute *c) {
  switch (c->kind) {
    case WEIR_PS_COMPUTE_ADD:
      return weir_ps_engine_run(h->engine, c->buffer, false, 0, 0, &c->err);
    case WEIR_PS_COMPUTE_KEEP:
      return WEIR_OK;
    case WEIR_PS_COMPUTE_NORM:
      return weir_ps_norm_work(h, c->buffer, &c->err);
    default:
      WEIR_TRY(weir_ps_engine_run(h->engine, c->buffer, true, c->step, c->age,
                                  &c->err));
      return weir_ps_engine_values(h->engine, &h->next, &c->err);
  }
}

static void work_compute(void *self) {
  weir_ps_host *h = self;
  h->compute.err = (weir_error)WEIR_ERROR_INIT;
  h->compute.status = compute(h, &h->compute);
}

static void normed(weir_ps_host *h, uint64_t ticket, bool counts) {
  if (counts) weir_ps_norm_own(h);
  weir_ps_server_normed(h->machine, ticket);
}

static void computed(void *self, bool runs) {
  weir_ps_host *h = self;
  weir_ps_compute *c = &h->compute;
  uint64_t ticket = c->ticket;
  if (!runs) return;
  bool keeps =
      (c->kind == WEIR_PS_COMPUTE_KEEP || c->kind == WEIR_PS_COMPUTE_NORM) &&
      c->round == h->round;
  if (keeps)
    h->last = c->buffer;
  else
    weir_ps_host_give(h, c->buffer);
  c->buffer = NULL;
  c->busy = false;
  if (c->status != WEIR_OK) {
    weir_ps_host_fail(h, &c->err);
    return;
  }
  if (c->kind == WEIR_PS_COMPUTE_APPLY)
    weir_ps_server_applied(h->machine, ticket);
  else if (c->kind == WEIR_PS_COMPUTE_FINISH)
    weir_ps_server_finished(h->machine, ticket);
  else if (c->kind == WEIR_PS_COMPUTE_NORM)
    normed(h, ticket, keeps);
  else
    weir_ps_server_added(h->machine, ticket);
}

void weir_ps_host_compute(weir_ps_host *h, weir_ps_compute_kind kind,
                          uint64_t ticket, weir_ps_buffer *buffer) {
  weir_ps_compute *c = &h->compute;
  assert(!c->busy && buffer != NULL);
  c->busy = true;
  c->kind = kind;
  c->ticket = ticket;
  c->buffer = buffer;
  c->round = h->round;
  weir_ps_runner_give(&h->computer, &c->errand);
}

void weir_ps_host_apply(void *self, uint64_t ticket, const weir_ps_message *m) {
  weir_ps_host *h = self;
  h->compute.step = m->lr_version;
  h->compute.age = m->staleness;
  h->unsettled = true;
  weir_ps_host_compute(h, WEIR_PS_COMPUTE_APPLY, ticket, m->data);
}

void weir_ps_host_add(void *self, uint64_t ticket, const weir_ps_message *m) {
  weir_ps_host *h = self;
  bool last = m->k + 1 == h->job->config.aggregate;
  h->summed = true;
  weir_ps_host_compute(h, last ? WEIR_PS_COMPUTE_KEEP : WEIR_PS_COMPUTE_ADD,
                       ticket, m->data);
}

void weir_ps_host_finish(void *self, uint64_t ticket, uint64_t step) {
  weir_ps_host *h = self;
  weir_ps_buffer *buffer = h->last;
  h->last = NULL;
  h->compute.step = step;
  h->compute.age = 0;
  h->unsettled = weir_ps_writes_over(&h->job->config);
  weir_ps_norm_set(h);
  weir_ps_host_compute(h, WEIR_PS_COMPUTE_FINISH, ticket, buffer);
}

/* ---- Restores */

static weir_status load_vars(weir_ps_host *h, const weir_ps_saved *saved,
                             weir_error *err) {
  const weir_split *s = h->job->split;
  for (uint32_t i = 0; i < s->var_count; i++) {
    weir_tensor *t = NULL;
    if (!weir_ps_engine_has(h->engine, i)) continue;
    weir_status status =
        weir_ps_saved_read(saved, s->vars[i].name, &s->vars[i].rows, &t, err);
    if (status == WEIR_OK) status = weir_ps_engine_set(h->engine, i, t, err);
    weir_tensor_unref(t);
    WEIR_TRY(status);
  }
  return WEIR_OK;
}

static weir_status settle(const weir_ps_host *h, const weir_ps_saved *saved,
                          weir_ps_ledger **out, weir_error *err) {
  WEIR_TRY(weir_ps_ledger_create(h->env->alloc, &h->job->config,
                                 h->options.limit, out, err));
  WEIR_TRY(weir_ps_generation_settle(saved->states, saved->count, *out, err));
  /* A job that had ended goes on: its chief looks at the stop rules anew, at
   * the step that was reached. */
  (*out)->over = (*out)->failed = false;
  return WEIR_OK;
}

static weir_status load_saved(weir_ps_host *h, weir_ps_load *l,
                              const weir_ps_saved *saved) {
  WEIR_TRY(load_vars(h, saved, &l->err));
  l->version =
      weir_ps_generation_version(saved->states, saved->count, h->options.index);
  if (h->options.index > 0) return WEIR_OK;
  return settle(h, saved, &l->ledger, &l->err);
}

static weir_status load_seed(weir_ps_host *h, weir_ps_load *l) {
  WEIR_TRY(weir_ps_seed_load(l->seed, h->engine, &l->err));
  l->version = l->seed->version;
  if (h->options.index > 0) return WEIR_OK;
  return weir_ps_seed_ledger(l->seed, h->engine, h->options.limit, &l->ledger,
                             &l->err);
}

/* Without a folder every generation is the first values. */
static bool is_first(const weir_ps_host *h, const weir_ps_load *l) {
  return l->generation == 0 || h->files == NULL;
}

static weir_status load(weir_ps_host *h, weir_ps_load *l) {
  weir_ps_saved saved = {0};
  l->version = 0;
  if (is_first(h, l) && l->seed != NULL) {
    WEIR_TRY(load_seed(h, l));
  } else if (is_first(h, l)) {
    WEIR_TRY(weir_ps_engine_first(h->engine, &l->err));
  } else {
    weir_status s =
        weir_ps_saved_open(h->files, l->generation, &saved, &l->err);
    if (s == WEIR_OK) s = load_saved(h, l, &saved);
    weir_ps_saved_release(&saved);
    WEIR_TRY(s);
  }
  return weir_ps_engine_values(h->engine, &h->next, &l->err);
}

static void work_load(void *self) {
  weir_ps_host *h = self;
  h->load.err = (weir_error)WEIR_ERROR_INIT;
  h->load.status = load(h, &h->load);
}

static void give_load(weir_ps_host *h, uint64_t ticket, uint64_t generation,
                      weir_ps_seed *seed) {
  weir_ps_load *l = &h->load;
  weir_ps_seed_release(h->engine, l->seed);
  l->seed = seed;
  l->busy = true;
  l->ticket = ticket;
  l->generation = generation;
  weir_ps_runner_give(&h->computer, &l->errand);
}

static void log_load(const weir_ps_host *h, const weir_ps_load *l) {
  if (l->status != WEIR_OK)
    weir_ps_host_log_loss(h, l->generation, "cannot be loaded", &l->err);
  else if (is_first(h, l) && l->seed != NULL)
    weir_ps_host_log(h, "first values of the chief, version %" PRIu64,
                     l->version);
  else if (is_first(h, l))
    weir_ps_host_log(h, "first values");
  else
    weir_ps_host_log(h, "generation %" PRIu64 " loaded, version %" PRIu64,
                     l->generation, l->version);
}

static void loaded(void *self, bool runs) {
  weir_ps_host *h = self;
  weir_ps_load *l = &h->load;
  if (!runs) return;
  bool ok = l->status == WEIR_OK;
  weir_ps_ledger *ledger = l->ledger;
  l->busy = false;
  l->ledger = NULL;
  if (l->again) {
    l->again = false;
    weir_ps_seed *seed = l->next_seed;
    l->next_seed = NULL;
    give_load(h, l->next_ticket, l->next_generation, seed);
  } else {
    log_load(h, l);
    weir_ps_seed_release(h->engine, l->seed);
    l->seed = NULL;
    if (ok) weir_ps_host_swap(h, l->version);
    weir_ps_host_fetch(h);
    weir_ps_server_restored(h->machine, l->ticket, l->version, ledger, ok);
    /* Memory may come back; a generation that does not fit stays so. */
    if (!ok && strcmp(l->err.id, "W6001") != 0) weir_ps_host_fail(h, &l->err);
  }
  weir_ps_ledger_release(ledger);
}

void weir_ps_host_restore(void *self, uint64_t ticket, uint64_t generation) {
  weir_ps_host *h = self;
  h->round++;
  weir_ps_host_give(h, h->last);
  h->last = NULL;
  weir_ps_seed *seed = h->seed;
  h->seed = NULL;
  if (h->load.busy) {
    weir_ps_seed_release(h->engine, h->load.next_seed);
    h->load.next_seed = seed;
    h->load.again = true;
    h->load.next_ticket = ticket;
    h->load.next_generation = generation;
    return;
  }
  give_load(h, ticket, generation, seed);
}

void weir_ps_host_drop_seeds(weir_ps_host *h) {
  weir_ps_seed_release(h->engine, h->load.seed);
  weir_ps_seed_release(h->engine, h->load.next_seed);
  weir_ps_seed_release(h->engine, h->seed_coming);
  h->load.seed = h->load.next_seed = h->seed_coming = NULL;
}

void weir_ps_host_compute_init(weir_ps_host *h) {
  h->compute.errand = (weir_ps_errand){
      .work = work_compute, .done = {.fn = computed, .self = h}, .self = h};
  h->load.errand = (weir_ps_errand){
      .work = work_load, .done = {.fn = loaded, .self = h}, .self = h};
}
