/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime's registered ops. */
#include "runtime/api/op/op_set.h"

#include <stdatomic.h>

#include "runtime/api/op/op_read.h"
#include "runtime/api/weir_internal.h"

struct weir_op_set {
  weir_registry registry; /* first: hold and drop get it */
  atomic_int refs;
  const weir_allocator *alloc;
  weir_arena arena;
  const weir_op_def *ops[WEIR_OP_MOST_REGISTERED];
  const weir_kernel_def *kernels[WEIR_OP_MOST_REGISTERED];
};

static weir_op_set *set_of(const weir_registry *registry) {
  return (weir_op_set *)(uintptr_t)registry;
}

static void hold(const weir_registry *registry) {
  atomic_fetch_add(&set_of(registry)->refs, 1);
}

static void drop(const weir_registry *registry) {
  weir_op_set_release(set_of(registry));
}

/* Empty. NULL when out of memory. */
static weir_op_set *create(const weir_allocator *alloc) {
  weir_op_set *set = weir_alloc_array(alloc, 1, sizeof *set);
  if (set == NULL) return NULL;
  set->registry = (weir_registry){.ops = set->ops,
                                  .kernels = set->kernels,
                                  .next = weir_builtin_registry(),
                                  .hold = hold,
                                  .drop = drop};
  atomic_init(&set->refs, 1);
  set->alloc = alloc;
  weir_arena_init(&set->arena, alloc);
  return set;
}

void weir_op_set_release(weir_op_set *set) {
  if (set == NULL || atomic_fetch_sub(&set->refs, 1) != 1) return;
  weir_arena_release(&set->arena);
  weir_free(set->alloc, set);
}

/* As weir_op_register says; before anybody reads the registry. */
static weir_status add(weir_op_set *set, const weir_op_spec *spec,
                       weir_error *err) {
  weir_registry *r = &set->registry;
  weir_op_spec read;
  WEIR_TRY(WEIR_OPTS_READ(weir_op_spec, &read, spec, err));
  if (read.name == NULL) return weir_fail_null(err, "weir_op_spec: name");
  if (weir_registry_find_op(r, weir_sv_from(read.name)) != NULL)
    return weir_fail(err, WEIR_W0002, NULL, "there is an op %.64s already",
                     read.name);
  if (r->op_count == WEIR_OP_MOST_REGISTERED)
    return weir_fail(err, WEIR_W0002, NULL,
                     "%.64s would be op %d that is registered, at most %d are",
                     read.name, WEIR_OP_MOST_REGISTERED + 1,
                     WEIR_OP_MOST_REGISTERED);
  weir_host_op *op = weir_arena_array(&set->arena, 1, sizeof *op);
  if (op == NULL) return weir_fail_memory(err, sizeof *op);
  WEIR_TRY(weir_op_read(&read, &set->arena, op, err));
  set->ops[r->op_count++] = &op->def;
  set->kernels[r->kernel_count++] = &op->kernel;
  return WEIR_OK;
}

weir_status weir_op_register(weir_runtime *runtime, const weir_op_spec *spec,
                             weir_error *err) {
  weir_status s = WEIR_OK;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (spec == NULL) return weir_fail_null(err, "spec");
  pthread_mutex_lock(&runtime->lock);
  if (runtime->ops_sealed)
    s = weir_fail(err, WEIR_W0004, NULL,
                  "ops are registered before the first graph of the runtime is "
                  "loaded and its first task is made");
  if (s == WEIR_OK && runtime->ops == NULL &&
      (runtime->ops = create(runtime->env.alloc)) == NULL)
    s = weir_fail_memory(err, sizeof(weir_op_set));
  if (s == WEIR_OK) s = add(runtime->ops, spec, err);
  pthread_mutex_unlock(&runtime->lock);
  return s;
}

const weir_registry *weir_runtime_registry(weir_runtime *runtime) {
  pthread_mutex_lock(&runtime->lock);
  runtime->ops_sealed = true;
  const weir_op_set *set = runtime->ops;
  pthread_mutex_unlock(&runtime->lock);
  return set != NULL ? &set->registry : weir_builtin_registry();
}
