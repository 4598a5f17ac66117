/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/weir.h"
#include "runtime/base/env_system.h"

#include <string.h>

#include "runtime/api/weir_internal.h"

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

static weir_status make_runtime(const weir_runtime_opts *opts,
                                const weir_allocator_hook *hook,
                                weir_runtime **out_runtime, weir_error *err) {
  weir_heap *heap = NULL;
  weir_env env = *weir_env_system();
  if (hook != NULL || opts->memory_limit != 0) {
    heap = weir_heap_create(hook, opts->memory_limit);
    if (heap == NULL) return weir_fail_memory(err, sizeof(weir_runtime));
    env.alloc = weir_heap_allocator(heap);
  }
  weir_runtime *runtime = weir_alloc_array(env.alloc, 1, sizeof *runtime);
  if (runtime == NULL) {
    weir_heap_release(heap);
    return weir_fail_memory(err, sizeof *runtime);
  }
  atomic_init(&runtime->refs, 1);
  runtime->heap = heap;
  runtime->env = env;
  runtime->memory_limit = opts->memory_limit;
  runtime->threads = opts->threads;
  runtime->on_log = opts->on_log;
  runtime->on_log_self = opts->on_log_self;
  pthread_mutex_init(&runtime->lock, NULL);
  *out_runtime = runtime;
  return WEIR_OK;
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
  pthread_mutex_destroy(&runtime->lock);
  weir_free(runtime->env.alloc, runtime);
  weir_heap_release(heap);
}
