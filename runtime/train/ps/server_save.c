/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/server_save.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/train/ps/server_values.h"

/* Saves, epochs and seals, on the disk's thread. A save holds the values that
 * were current when it was asked for; a disk that is full or fails costs the
 * generation and nothing else. */

enum { KEEP_REST_NS = 200000000, KEEP_WORDS = 50 /* tries per line */ };

/* ---- Saves */

static void work_save(void *self) {
  weir_ps_save *v = self;
  weir_ps_host *h = v->host;
  weir_checkpoint_info info = {.step = v->generation,
                               .seed = h->job->seed,
                               .run_id = weir_sv_from(v->run),
                               .extra = weir_strbuf_view(&v->text)};
  if (v->status != WEIR_OK || h->files == NULL) return;
  v->status =
      weir_ps_generations_save(h->files, &info, v->entries, v->count, &v->err);
}

static void drop_values(weir_ps_save *v) {
  for (uint32_t i = 0; i < v->count; i++)
    weir_tensor_unref((weir_tensor *)(uintptr_t)v->entries[i].tensor);
  v->count = 0;
}

static void saved(void *self, bool runs) {
  weir_ps_save *v = self;
  weir_ps_host *h = v->host;
  if (!runs) return;
  bool ok = v->status == WEIR_OK;
  drop_values(v);
  v->busy = false;
  if (!ok) weir_ps_host_log_loss(h, v->generation, "is given up", &v->err);
  weir_ps_server_saved(h->machine, v->generation, ok);
}

static weir_checkpoint_role role_of(const weir_ps_host *h,
                                    const weir_split_var *v) {
  const weir_graph *g = h->job->split->train->graph;
  if (v->of != UINT32_MAX) return WEIR_CHECKPOINT_SLOT;
  return strcmp(g->nodes[v->node].op->name, "state") == 0
             ? WEIR_CHECKPOINT_STATE
             : WEIR_CHECKPOINT_VARIABLE;
}

static weir_status hold_values(weir_ps_host *h, weir_ps_save *v) {
  for (uint32_t i = 0; i < h->current.count; i++) {
    const weir_split_var *var = &h->job->split->vars[h->lists->held[i]];
    weir_tensor *t = NULL;
    WEIR_TRY(weir_ps_host_value(h, i, &t, &v->err));
    v->entries[i] = (weir_checkpoint_entry){var->label, role_of(h, var), t};
    v->count = i + 1;
  }
  return WEIR_OK;
}

static weir_status write_text(weir_ps_host *h, weir_ps_save *v,
                              const weir_ps_state *state) {
  weir_ps_part part = {.life = weir_ps_server_count(h->machine).life,
                       .server = h->options.index,
                       .servers = h->job->config.servers,
                       .workers = h->job->config.workers};
  snprintf(v->run, sizeof v->run, "ps-%" PRIu64, part.life);
  weir_strbuf_clear(&v->text);
  return weir_ps_part_write(&part, state, &v->text, &v->err);
}

static void gave_up(void *self, bool runs) {
  weir_ps_host *h = self;
  uint64_t generation = h->given_up_generation;
  h->given_up_generation = 0;
  if (runs) weir_ps_server_saved(h->machine, generation, false);
}

/* Two others are under way, which were given up since: the disk is slow. */
static void give_up(weir_ps_host *h, uint64_t generation) {
  bool posted = h->given_up_generation != 0;
  h->given_up_generation = generation;
  weir_ps_host_log(h,
                   "generation %" PRIu64
                   " is given up: older ones are "
                   "still being written",
                   generation);
  if (!posted) h->net.post(h->net.self, &h->given_up);
}

void weir_ps_host_save(void *self, const weir_ps_state *state) {
  weir_ps_host *h = self;
  weir_ps_save *v = NULL;
  for (int i = 0; i < WEIR_PS_SAVES && v == NULL; i++)
    if (!h->saves[i].busy) v = &h->saves[i];
  if (v == NULL) {
    give_up(h, state->generation);
    return;
  }
  v->busy = true;
  v->generation = state->generation;
  v->err = (weir_error)WEIR_ERROR_INIT;
  v->status = write_text(h, v, state);
  if (v->status == WEIR_OK) v->status = hold_values(h, v);
  weir_ps_runner_give(&h->disk, &v->errand);
}

/* ---- Epochs and seals */

/* An epoch that may be lost is not granted: the disk is asked until it has it,
 * and the chief waits. */
static void work_keep(void *self) {
  weir_ps_host *h = self;
  weir_ps_note *n = &h->keep;
  const weir_clock *clock = h->env->clock;
  if (n->tries > 0)
    weir_ps_runner_rest(&h->disk, clock->now_ns(clock->self) + KEEP_REST_NS);
  n->err = (weir_error)WEIR_ERROR_INIT;
  n->status = WEIR_OK;
  if (h->files != NULL)
    n->status =
        weir_ps_generations_keep(h->files, n->number, n->chief, &n->err);
}

static void kept(void *self, bool runs) {
  weir_ps_host *h = self;
  weir_ps_note *n = &h->keep;
  if (!runs) return;
  if (n->status == WEIR_OK) {
    weir_ps_server_kept(h->machine, n->number);
    return;
  }
  if (n->tries++ % KEEP_WORDS == 0)
    weir_ps_host_log(h, "a chief waits, its epoch cannot be written: %s %s",
                     n->err.id, n->err.message);
  weir_ps_runner_give(&h->disk, &n->errand);
}

void weir_ps_host_keep(void *self, uint64_t epoch, uint64_t chief) {
  weir_ps_host *h = self;
  h->keep.number = epoch;
  h->keep.chief = chief;
  h->keep.tries = 0;
  weir_ps_runner_give(&h->disk, &h->keep.errand);
}

static void work_seal(void *self) {
  weir_ps_host *h = self;
  weir_ps_note *n = &h->seal;
  n->err = (weir_error)WEIR_ERROR_INIT;
  n->status = h->files == NULL
                  ? WEIR_OK
                  : weir_ps_generations_seal(h->files, n->number, &n->err);
}

static void sealed(void *self, bool runs) {
  weir_ps_host *h = self;
  const weir_ps_note *n = &h->seal;
  if (!runs) return;
  if (n->status != WEIR_OK)
    weir_ps_host_log_loss(h, n->number, "is given up", &n->err);
  else if (h->files != NULL)
    weir_ps_host_log(h, "generation %" PRIu64 " is complete", n->number);
  weir_ps_server_sealed(h->machine, n->number, n->status == WEIR_OK);
}

void weir_ps_host_seal(void *self, uint64_t generation) {
  weir_ps_host *h = self;
  h->seal.number = generation;
  weir_ps_runner_give(&h->disk, &h->seal.errand);
}

/* ---- Start and end */

weir_status weir_ps_host_save_init(weir_ps_host *h, weir_error *err) {
  h->given_up = (weir_node_call){.fn = gave_up, .self = h};
  h->keep.errand = (weir_ps_errand){
      .work = work_keep, .done = {.fn = kept, .self = h}, .self = h};
  h->seal.errand = (weir_ps_errand){
      .work = work_seal, .done = {.fn = sealed, .self = h}, .self = h};
  for (int i = 0; i < WEIR_PS_SAVES; i++) {
    weir_ps_save *v = &h->saves[i];
    v->host = h;
    v->errand = (weir_ps_errand){
        .work = work_save, .done = {.fn = saved, .self = v}, .self = v};
    weir_strbuf_init(&v->text, h->env->alloc);
    v->entries = weir_arena_array(&h->arena, h->lists->held_count + 1u,
                                  sizeof *v->entries);
    if (v->entries == NULL)
      return weir_fail_memory(err, h->lists->held_count * sizeof *v->entries);
  }
  return WEIR_OK;
}

void weir_ps_host_save_release(weir_ps_host *h) {
  for (int i = 0; i < WEIR_PS_SAVES; i++) {
    drop_values(&h->saves[i]);
    if (h->saves[i].host != NULL) weir_strbuf_release(&h->saves[i].text);
  }
}
