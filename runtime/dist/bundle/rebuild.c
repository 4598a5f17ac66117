/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/bundle/rebuild.h"

#include "placement/carry/carry_placing.h"
#include "runtime/exec/compile/compile_needs.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/train/train_graph.h"
#include "runtime/graph/train/train_spec.h"

static weir_status train(weir_rebuilt *out, weir_error *err) {
  if (out->loaded->train == NULL)
    return weir_fail(err, WEIR_W7051, NULL,
                     "the bundle that came trains a graph without `train`");
  WEIR_TRY(weir_train_spec_read(out->loaded, NULL, &out->spec, err));
  WEIR_TRY(weir_graph_train(out->loaded, out->spec, &out->train, err));
  out->graph = out->train->graph;
  return WEIR_OK;
}

/* Every op that the driver's program has registered is here too, and means the
 * same. More of them do no harm: no name is that of a built-in op. */
static weir_status check_ops(const weir_registry *registry,
                             const weir_unpacked_bundle *b, weir_error *err) {
  for (size_t i = 0; i < b->op_count; i++) {
    const weir_param_value *theirs = &b->ops[i];
    const weir_op_def *op = weir_registry_find_op(registry, theirs->name);
    const char *ours = op != NULL ? op->signature : NULL;
    if (ours != NULL && weir_sv_is(theirs->text, ours)) continue;
    if (ours == NULL)
      return weir_fail(err, WEIR_W7085, NULL,
                       "the driver has registered the op %.*s, and this task "
                       "has not",
                       WEIR_SV(theirs->name));
    return weir_fail(err, WEIR_W7085, NULL,
                     "the op %.*s of the driver is `%.*s`, of this task `%s`",
                     WEIR_SV(theirs->name), WEIR_SV(theirs->text), ours);
  }
  return WEIR_OK;
}

weir_status weir_bundle_rebuild(const weir_env *env,
                                const weir_registry *registry,
                                weir_unpacked_bundle *bundle, weir_rebuilt *out,
                                weir_error *err) {
  weir_load_options options = {.registry = registry};
  *out = (weir_rebuilt){.loaded = NULL};
  WEIR_TRY(check_ops(registry, bundle, err));
  WEIR_TRY(weir_graph_load_sources(env, &bundle->sources, &options,
                                   &out->loaded, err));
  out->graph = out->loaded;
  if (bundle->bundle.train) WEIR_TRY(train(out, err));
  return weir_placing_unpack(env->alloc, bundle->placing, weir_compile_needs,
                             env, &out->placing, err);
}

void weir_rebuilt_release(weir_rebuilt *r) {
  weir_placing_unref(r->placing);
  weir_train_graph_release(r->train);
  weir_train_spec_release(r->spec);
  weir_graph_unref(r->loaded);
  *r = (weir_rebuilt){.loaded = NULL};
}
