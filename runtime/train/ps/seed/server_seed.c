/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/seed/server_seed.h"

/* Variables have the types of the training graph, but for the rows of a piece,
 * whichever graph they are in; a given step is no variable of the update graph,
 * but travels all the same. */

static weir_status fill(const weir_ps_engine *e, weir_ps_seed *seed,
                        weir_error *err) {
  const weir_split *split = e->job->split;
  const weir_graph *g = split->train->graph;
  for (uint32_t i = 0; i < e->lists->held_count; i++) {
    const weir_split_var *var = &split->vars[e->lists->held[i]];
    const weir_value *v = &g->values[g->nodes[var->node].first_output];
    weir_shape shape = weir_split_shape(v->shape, &var->rows);
    WEIR_TRY(weir_tensor_create_shaped(e->env->alloc, v->dtype, &shape,
                                       &seed->tensors[i], err));
    seed->pieces[i] =
        (weir_ps_piece){seed->tensors[i]->data, seed->tensors[i]->bytes};
  }
  return WEIR_OK;
}

weir_status weir_ps_seed_create(const weir_ps_engine *e,
                                weir_ps_seed **out_seed, weir_error *err) {
  const weir_allocator *alloc = e->env->alloc;
  size_t room = e->lists->held_count + 1u;
  *out_seed = NULL;
  weir_ps_seed *seed = weir_alloc_array(alloc, 1, sizeof *seed);
  if (seed == NULL) return weir_fail_memory(err, sizeof *seed);
  seed->tensors = weir_alloc_array(alloc, room, sizeof *seed->tensors);
  seed->pieces = weir_alloc_array(alloc, room, sizeof *seed->pieces);
  weir_status s = seed->tensors == NULL || seed->pieces == NULL
                      ? weir_fail_memory(err, room * sizeof *seed->pieces)
                      : fill(e, seed, err);
  if (s == WEIR_OK)
    *out_seed = seed;
  else
    weir_ps_seed_release(e, seed);
  return s;
}

void weir_ps_seed_release(const weir_ps_engine *e, weir_ps_seed *seed) {
  if (seed == NULL) return;
  for (uint32_t i = 0; seed->tensors != NULL && i < e->lists->held_count; i++)
    weir_tensor_unref(seed->tensors[i]);
  weir_free(e->env->alloc, seed->tensors);
  weir_free(e->env->alloc, seed->pieces);
  weir_free(e->env->alloc, seed);
}

/* The number of updates, which each server has, travels to server 0 alone. */
static weir_status set_step(const weir_ps_seed *seed, weir_ps_engine *e,
                            weir_error *err) {
  const weir_split *split = e->job->split;
  weir_shape scalar = weir_shape_of(0, NULL);
  weir_tensor *t = NULL;
  WEIR_TRY(
      weir_tensor_create_shaped(e->env->alloc, WEIR_I64, &scalar, &t, err));
  weir_tensor_set_i64(t, 0, (int64_t)seed->version);
  weir_status s = WEIR_OK;
  for (uint32_t i = 0; s == WEIR_OK && i < split->var_count; i++)
    if (split->vars[i].server == WEIR_SPLIT_ALL && weir_ps_engine_has(e, i))
      s = weir_ps_engine_set(e, i, t, err);
  weir_tensor_unref(t);
  return s;
}

weir_status weir_ps_seed_load(const weir_ps_seed *seed, weir_ps_engine *e,
                              weir_error *err) {
  for (uint32_t i = 0; i < e->lists->held_count; i++)
    if (weir_ps_engine_has(e, e->lists->held[i]))
      WEIR_TRY(weir_ps_engine_set(e, e->lists->held[i], seed->tensors[i], err));
  return set_step(seed, e, err);
}

weir_status weir_ps_seed_ledger(const weir_ps_seed *seed,
                                const weir_ps_engine *e, uint64_t limit,
                                weir_ps_ledger **out_ledger, weir_error *err) {
  uint64_t step = seed->version;
  WEIR_TRY(weir_ps_ledger_create(e->env->alloc, &e->job->config,
                                 limit > step ? limit : step, out_ledger, err));
  (*out_ledger)->cursor = step;
  if (e->job->config.mode == WEIR_PS_SYNC)
    (*out_ledger)->base = step;
  else
    (*out_ledger)->earlier = step; /* of nobody here */
  return WEIR_OK;
}
