/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/map.h"
#include "runtime/graph/hash.h"
#include "runtime/train/loop/weights.h"
#include "runtime/train/ps/watch/job_watch.h"
#include "runtime/train/spec/data_spec.h"

/* From a graph and its section `train` to what all tasks of a job know. All of
 * it follows from the graph, the section and the numbers of tasks, in an order
 * that is that of the split, so processes agree without a word. */

/* ---- Forms that processes do not train yet */

static weir_status refuse(const weir_train_spec *spec, const char *what,
                          weir_error *err) {
  return weir_fail(err, WEIR_W1122, &spec->shared.way_mark,
                   "%s on parameter servers is not in this version", what);
}

static weir_status check_spec(const weir_train_spec *spec, weir_error *err) {
  const weir_train_shared *s = &spec->shared;
  char text[96];
  snprintf(text, sizeof text, "mode %s",
           s->way_name != NULL ? s->way_name : "(none)");
  if (!s->between) return refuse(spec, text, err);
  if (spec->reset_state.size > 0)
    return refuse(
        spec, "reset_state (a server does not know where an epoch ends)", err);
  return WEIR_OK;
}

static weir_status refuse_node(const weir_ps_job *job, weir_node_id id,
                               const char *why, weir_error *err) {
  const weir_node *node = &job->split->train->graph->nodes[id];
  return weir_fail(err, WEIR_W1122, &node->mark,
                   "%.*s: %s on parameter servers is not in this version",
                   WEIR_SV(node->name), why);
}

/* Both ends of a link know the size of each value. */
static weir_status check_sizes(const weir_ps_job *job, weir_error *err) {
  const weir_split *s = job->split;
  const weir_value *values = s->train->graph->values;
  const char *why = "a value whose shape is not known before it is computed";
  for (uint32_t i = 0; i < s->push_count; i++)
    if (!weir_shape_known(values[s->pushes[i].train].shape))
      return refuse_node(job, values[s->pushes[i].train].node, why, err);
  return WEIR_OK;
}

/* A state that goes from batch to batch belongs to one stream of batches. */
static weir_status check_states(const weir_ps_job *job, const bool *reads,
                                weir_error *err) {
  const weir_split *s = job->split;
  bool *own = weir_own_states(job->graph, job->env->alloc);
  weir_status status = WEIR_OK;
  if (own == NULL) return weir_fail_memory(err, job->graph->node_count);
  for (uint32_t i = 0; status == WEIR_OK && i < s->var_count; i++)
    if (reads[i] && s->vars[i].node < job->graph->node_count &&
        own[s->vars[i].node])
      status = refuse_node(job, s->vars[i].node,
                           "a state that goes from batch to batch", err);
  weir_free(job->env->alloc, own);
  return status;
}

/* ---- Numbers of the job */

static weir_status read_config(weir_ps_job *job, uint32_t aggregate,
                               const weir_ps_job_options *options,
                               weir_error *err) {
  const weir_train_shared *s = &job->spec->shared;
  bool async = s->way == WEIR_WAY_ASYNC, equal = false;
  WEIR_TRY(weir_data_shares(job->graph, job->spec, true, &equal, err));
  bool limit = async && s->max_staleness != UINT32_MAX;
  job->config = (weir_ps_config){
      .mode = s->way == WEIR_WAY_SYNC ? WEIR_PS_SYNC
              : async                 ? WEIR_PS_ASYNC
                                      : WEIR_PS_BOUNDED,
      .servers = options->servers,
      .workers =
          options->slots > options->workers ? options->slots : options->workers,
      .aggregate = aggregate,
      .backup = s->way == WEIR_WAY_SYNC ? s->backup : 0,
      .staleness = s->way == WEIR_WAY_BOUNDED ? s->staleness : 0,
      .limited = limit,
      .max_staleness = limit ? s->max_staleness : 0,
      .shares = equal ? WEIR_PS_EQUAL : WEIR_PS_BY_LOAD};
  return weir_ps_config_check(&job->config, err);
}

/* ---- Lists */

/* Which variables a run for the numbers and the pushes reads. */
static weir_status find_reads(weir_ps_job *job, bool *reads, weir_error *err) {
  const weir_split *s = job->split;
  uint32_t count = job->number_count + s->push_count;
  weir_value_id *all = weir_alloc_array(job->env->alloc, count, sizeof *all);
  if (all == NULL) return weir_fail_memory(err, count * sizeof *all);
  memcpy(all, job->numbers, job->number_count * sizeof *all);
  for (uint32_t i = 0; i < s->push_count; i++)
    all[job->number_count + i] = s->pushes[i].worker;
  weir_status status = weir_split_reads(s, all, count, reads, err);
  weir_free(job->env->alloc, all);
  return status;
}

/* Variables that each server has are server 0's in lists. */
static bool is_of(const weir_split_var *v, uint32_t server) {
  return v->server == server || (v->server == WEIR_SPLIT_ALL && server == 0);
}

static weir_status list_server(weir_ps_job *job, uint32_t server,
                               const bool *reads, weir_ps_lists *out,
                               weir_error *err) {
  const weir_split *s = job->split;
  const weir_update_graph *u = &s->updates[server];
  uint32_t *pulls = weir_arena_array(&job->arena, s->var_count, sizeof *pulls);
  uint32_t *held = weir_arena_array(&job->arena, s->var_count, sizeof *held);
  uint32_t *pushes =
      weir_arena_array(&job->arena, s->push_count, sizeof *pushes);
  if (pulls == NULL || held == NULL || pushes == NULL)
    return weir_fail_memory(err, s->var_count * sizeof *held);
  for (uint32_t i = 0; i < s->var_count; i++) {
    if (!is_of(&s->vars[i], server)) continue;
    held[out->held_count++] = i;
    if (reads[i] && !s->vars[i].fixed) pulls[out->pull_count++] = i;
  }
  out->changing_count = out->pull_count;
  for (uint32_t i = 0; i < s->var_count; i++)
    if (is_of(&s->vars[i], server) && reads[i] && s->vars[i].fixed)
      pulls[out->pull_count++] = i;
  for (uint32_t i = 0; i < s->push_count; i++)
    if (u->pushes[i] != WEIR_NO_VALUE) pushes[out->push_count++] = i;
  out->pulls = pulls;
  out->held = held;
  out->pushes = pushes;
  return WEIR_OK;
}

static weir_status list_servers(weir_ps_job *job, const bool *reads,
                                weir_error *err) {
  uint32_t count = job->config.servers;
  weir_ps_lists *lists = weir_arena_array(&job->arena, count, sizeof *lists);
  if (lists == NULL) return weir_fail_memory(err, count * sizeof *lists);
  job->servers = lists;
  for (uint32_t k = 0; k < count; k++)
    WEIR_TRY(list_server(job, k, reads, &lists[k], err));
  return WEIR_OK;
}

static weir_status list_all(weir_ps_job *job, weir_error *err) {
  const weir_allocator *alloc = job->env->alloc;
  WEIR_TRY(check_sizes(job, err));
  WEIR_TRY(weir_ps_job_watch(job, err));
  bool *reads = weir_alloc_array(alloc, job->split->var_count, sizeof *reads);
  if (reads == NULL) return weir_fail_memory(err, job->split->var_count);
  weir_status s = find_reads(job, reads, err);
  if (s == WEIR_OK) s = check_states(job, reads, err);
  if (s == WEIR_OK) s = list_servers(job, reads, err);
  weir_free(alloc, reads);
  return s;
}

/* ---- The job's hash */

static uint64_t add(uint64_t hash, uint64_t number) {
  return weir_hash_bytes(&number, sizeof number, hash);
}

static uint64_t add_text(uint64_t hash, weir_sv text) {
  return weir_hash_bytes(text.data, text.size, add(hash, text.size));
}

/* A collection that is being read. */
typedef struct level {
  const weir_yaml *at;
  uint32_t next;
} level;

/* Goes on to |y| itself: one level deeper if it has parts. */
static uint64_t enter(const weir_yaml *y, level *levels, uint32_t *depth,
                      uint64_t hash) {
  enum { DEEPEST = 64 }; /* what lies below counts by its number alone */
  hash = add(add(hash, y->kind), y->count);
  if (y->kind == WEIR_YAML_SCALAR) return add_text(hash, y->text);
  if (*depth < DEEPEST) levels[(*depth)++] = (level){y, 0};
  return hash;
}

/* Of a section, but for the folders of its files, which machines have at places
 * of their own. */
static uint64_t add_section(uint64_t hash, const weir_yaml *section) {
  level levels[64];
  uint32_t depth = 0;
  if (section == NULL) return add(hash, 0);
  hash = enter(section, levels, &depth, hash);
  while (depth > 0) {
    level *l = &levels[depth - 1];
    if (l->next == l->at->count) {
      depth--;
    } else if (l->at->kind == WEIR_YAML_LIST) {
      hash = enter(l->at->items[l->next++], levels, &depth, hash);
    } else {
      const weir_yaml_entry *e = &l->at->entries[l->next++];
      hash = add_text(hash, e->key);
      if (!weir_sv_is(e->key, "root"))
        hash = enter(e->value, levels, &depth, hash);
    }
  }
  return hash;
}

/* The training graph has the optimizer and its numbers; seeds, which give first
 * values and dropped units, are no part of a graph's hash. */
static uint64_t hash_of(const weir_ps_job *job, uint64_t seed) {
  const weir_graph *g = job->split->train->graph;
  const weir_ps_config *c = &job->config;
  const uint64_t numbers[] = {c->mode,      c->servers,       c->workers,
                              c->aggregate, c->backup,        c->staleness,
                              c->window,    c->max_staleness, c->lease_steps,
                              c->norm,      c->limited,       c->shares,
                              seed};
  uint64_t h = weir_graph_hash(g);
  for (uint32_t i = 0; i < g->node_count; i++) h = add(h, g->nodes[i].seed);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    h = add(h, numbers[i]);
  for (uint32_t i = 0; i < job->split->var_count; i++) {
    h = add(h, job->split->vars[i].server);
    h = add(h, (uint64_t)job->split->vars[i].rows.first);
  }
  for (uint32_t i = 0; i < job->number_count; i++) h = add(h, job->numbers[i]);
  h = add_section(h, job->graph->data); /* who reads what follows from it */
  return h != 0 ? h : 1;
}

/* ---- The job */

static weir_status build(weir_ps_job *job, const weir_ps_job_options *options,
                         weir_error *err) {
  weir_split_options how =
      weir_split_options_of(job->spec, options->servers, options->workers);
  WEIR_TRY(check_spec(job->spec, err));
  WEIR_TRY(read_config(job, how.aggregate, options, err));
  job->given_step = how.given_step;
  WEIR_TRY(weir_graph_split(job->graph, job->spec, &how, &job->split, err));
  job->config.norm = job->split->sum_count > 0;
  WEIR_TRY(list_all(job, err));
  job->hash = hash_of(job, options->seed);
  return WEIR_OK;
}

weir_status weir_ps_job_create(const weir_env *env, const weir_graph *graph,
                               const weir_train_spec *spec,
                               const weir_ps_job_options *options,
                               weir_ps_job **out_job, weir_error *err) {
  weir_error mine = WEIR_ERROR_INIT;
  *out_job = NULL;
  weir_ps_job *job = weir_alloc_array(env->alloc, 1, sizeof *job);
  if (job == NULL) return weir_fail_memory(err, sizeof *job);
  weir_arena_init(&job->arena, env->alloc);
  job->env = env;
  job->graph = graph;
  job->spec = spec;
  job->seed = options->seed;
  weir_status s = build(job, options, err != NULL ? err : &mine);
  if (s == WEIR_OK)
    *out_job = job;
  else
    weir_ps_job_release(job);
  return s;
}

void weir_ps_over_error(uint64_t seq, weir_error *err) {
  (void)weir_fail(err, WEIR_W7101, NULL,
                  "the chief has ended with error W%04" PRIu64
                  ", and so does the job",
                  seq % 10000);
  weir_hint(err, "its log says why; started again, the job goes on");
}

void weir_ps_job_release(weir_ps_job *job) {
  if (job == NULL) return;
  weir_split_release(job->split);
  weir_arena_release(&job->arena);
  weir_free(job->env->alloc, job);
}
