/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/weir.h"

#include <string.h>

#include "kernels/profile.h"
#include "kernels/tune/tuned.h"
#include "runtime/api/op/op_set.h"
#include "runtime/api/weir_internal.h"
#include "runtime/base/diag/diag.h"
#include "runtime/base/env_system.h"
#include "runtime/base/map.h"
#include "runtime/exec/gpu/gpus.h"

/* Set by the build from the project's version. */
#ifndef WEIR_VERSION_TEXT
#error "the build defines WEIR_VERSION_TEXT and WEIR_VERSION_NUMBER"
#endif

uint32_t weir_version(void) {
  return WEIR_VERSION_NUMBER;
}

const char *weir_version_text(void) {
  return WEIR_VERSION_TEXT;
}

static weir_status read_hook(const weir_runtime_opts *opts,
                             weir_allocator_hook *hook, weir_error *err) {
  WEIR_TRY(WEIR_OPTS_READ(weir_allocator_hook, hook, opts->allocator, err));
  if (opts->allocator != NULL && (hook->alloc == NULL || hook->free == NULL))
    return weir_fail_null(err, "weir_allocator_hook: alloc or free");
  return WEIR_OK;
}

enum { BUILD_LIMIT = 1 << 30 };

/* The runtime's own heap, where something is to be counted or to end. */
static weir_status make_heap(const weir_runtime_opts *opts,
                             const weir_allocator_hook *hook,
                             int64_t deadline_ns, weir_env *env,
                             weir_heap **out_heap, weir_error *err) {
  weir_heap_opts heap = {opts->memory_limit, deadline_ns, env->clock};
  *out_heap = NULL;
  if (hook == NULL && heap.limit_bytes == 0 && heap.deadline_ns == 0)
    return WEIR_OK;
  weir_allocator inner = *weir_allocator_system();
  if (hook != NULL)
    inner = (weir_allocator){hook->self, hook->alloc, hook->free, NULL};
  *out_heap = weir_heap_create(&inner, &heap);
  if (*out_heap == NULL) return weir_fail_memory(err, sizeof(weir_runtime));
  env->alloc = weir_heap_allocator(*out_heap);
  return WEIR_OK;
}

/* Of one graph: the default where nothing else bounds it. */
static uint64_t build_limit(const weir_runtime_opts *opts) {
  if (opts->build_limit == UINT64_MAX) return 0;
  if (opts->build_limit != 0) return opts->build_limit;
  return opts->memory_limit != 0 ? 0 : BUILD_LIMIT;
}

static int64_t deadline(const weir_env *env, const weir_runtime_opts *opts) {
  if (opts->timeout_ns <= 0) return 0;
  return env->clock->now_ns(env->clock->self) + opts->timeout_ns;
}

/* Of devices. */
static void say(void *self, const char *text) {
  const weir_runtime *runtime = self;
  if (runtime->on_device != NULL)
    runtime->on_device(runtime->on_log_self, text);
  else
    weir_log(runtime, WEIR_LOG_INFO, "%s", text);
}

/* What CPUs' and GPUs' parts of one file have in common is said once. */
static void warn(void *self, const weir_error *warning) {
  weir_runtime *runtime = self;
  weir_diag diag;
  uint64_t said = weir_hash_bytes(warning->message, strlen(warning->message),
                                  warning->line);
  if (atomic_exchange(&runtime->warned, said) == said) return;
  weir_diag_init(&diag, warning);
  weir_log_diag(self, &diag);
}

static weir_status create_gpus(weir_runtime *runtime,
                               const weir_runtime_opts *opts, weir_error *err) {
  if (opts->device_locks != NULL) {
    size_t bytes = strlen(opts->device_locks) + 1;
    runtime->device_locks = weir_alloc(runtime->env.alloc, bytes);
    if (runtime->device_locks == NULL) return weir_fail_memory(err, bytes);
    memcpy(runtime->device_locks, opts->device_locks, bytes);
  }
  const weir_gpus_options gpus = {.wait_ns = opts->device_wait_ns,
                                  .locks = runtime->device_locks,
                                  .tune = opts->tune,
                                  .warn = warn,
                                  .say = say,
                                  .say_self = runtime};
  return weir_gpus_create(&runtime->env, &gpus, &runtime->env.gpus, err);
}

static weir_status open_choices(weir_runtime *runtime,
                                const weir_runtime_opts *opts,
                                weir_error *err) {
  const weir_tuned_options tuned = {.path = opts->tune,
                                    .profile = runtime->env.profile,
                                    .times = opts->tune_kernels == 1,
                                    .strict = opts->tune_strict == 1,
                                    .warn = warn,
                                    .self = runtime};
  if (opts->tune == NULL) return WEIR_OK;
  return weir_tuned_create(&runtime->env, &tuned, &runtime->env.tuned, err);
}

static weir_status make_runtime(const weir_runtime_opts *opts,
                                const weir_allocator_hook *hook,
                                weir_runtime **out_runtime, weir_error *err) {
  weir_heap *heap = NULL;
  weir_env env = *weir_env_system();
  if (opts->isa != NULL) {
    WEIR_TRY(weir_profile_named(opts->isa, &env.profile, err));
    WEIR_TRY(weir_profile_use(env.profile, err));
  } else {
    env.profile = weir_profile_best();
  }
  int64_t deadline_ns = deadline(&env, opts);
  WEIR_TRY(make_heap(opts, hook, deadline_ns, &env, &heap, err));
  weir_runtime *runtime = weir_alloc_array(env.alloc, 1, sizeof *runtime);
  if (runtime == NULL) {
    weir_status s = weir_fail_memory(err, sizeof *runtime);
    s = weir_settle(env.alloc, "making a runtime", s, err);
    weir_heap_release(heap);
    return s;
  }
  atomic_init(&runtime->refs, 1);
  atomic_flag_clear(&runtime->insecure_told);
  atomic_init(&runtime->warned, 0);
  runtime->heap = heap;
  runtime->env = env;
  runtime->memory_limit = opts->memory_limit;
  runtime->build_limit = build_limit(opts);
  runtime->deadline_ns = deadline_ns;
  runtime->threads = opts->threads;
  runtime->on_log = opts->on_log;
  runtime->on_device = opts->on_device;
  runtime->on_log_self = opts->on_log_self;
  pthread_mutex_init(&runtime->lock, NULL);
  weir_status s = open_choices(runtime, opts, err);
  if (s == WEIR_OK) s = create_gpus(runtime, opts, err);
  if (s == WEIR_OK) {
    *out_runtime = runtime;
    return s;
  }
  s = weir_settle(env.alloc, "making a runtime", s, err);
  weir_runtime_release(runtime);
  return s;
}

weir_status weir_runtime_create(const weir_runtime_opts *opts,
                                weir_runtime **out_runtime, weir_error *err) {
  if (out_runtime == NULL) return weir_fail_null(err, "out_runtime");
  *out_runtime = NULL;
  weir_runtime_opts o;
  weir_allocator_hook hook;
  WEIR_TRY(WEIR_OPTS_READ(weir_runtime_opts, &o, opts, err));
  WEIR_TRY(read_hook(&o, &hook, err));
  if (o.threads < 0 || o.threads > 256)
    return weir_fail(err, WEIR_W0002, NULL,
                     "threads is %d, expected 1 to 256, or 0 for one a core",
                     (int)o.threads);
  if (o.device_wait_ns < 0)
    return weir_fail(err, WEIR_W0002, NULL, "device_wait_ns is negative");
  if (o.tune_kernels != 0 && o.tune == NULL)
    return weir_fail(err, WEIR_W0002, NULL,
                     "tune_kernels is given without tune, a file");
  return make_runtime(&o, o.allocator != NULL ? &hook : NULL, out_runtime, err);
}

weir_runtime *weir_runtime_ref(weir_runtime *runtime) {
  atomic_fetch_add(&runtime->refs, 1);
  return runtime;
}

void weir_runtime_release(weir_runtime *runtime) {
  if (runtime == NULL || atomic_fetch_sub(&runtime->refs, 1) != 1) return;
  weir_heap *heap = runtime->heap;
  weir_pool_release(runtime->pool);
  weir_gpus_release(runtime->env.gpus);
  weir_tuned_release(runtime->env.tuned);
  weir_op_set_release(runtime->ops);
  weir_free(runtime->env.alloc, runtime->device_locks);
  pthread_mutex_destroy(&runtime->lock);
  weir_free(runtime->env.alloc, runtime);
  weir_heap_release(heap);
}

weir_status weir_settle(const weir_allocator *alloc, const char *what,
                        weir_status status, weir_error *err) {
  if (status != WEIR_RESOURCE_EXHAUSTED || alloc->refusal == NULL ||
      (err != NULL && strcmp(err->id, "W6001") != 0) ||
      alloc->refusal(alloc->self) == WEIR_REFUSAL_NONE)
    return status;
  return weir_fail_refused(alloc, what, err);
}
