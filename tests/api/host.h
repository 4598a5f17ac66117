/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_API_HOST_H_
#define TESTS_API_HOST_H_

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/weir.h"
#include "tests/check.h"

/* A host's allocator that counts, and fails on request. */

typedef struct host {
  atomic_long live, calls, bytes; /* bytes: of blocks that are live */
  long fail_at;                   /* 0: never */
  bool for_ever;
} host;

static inline void *host_alloc(void *self, size_t bytes, size_t align) {
  host *h = self;
  void *ptr = NULL;
  long call = atomic_fetch_add(&h->calls, 1) + 1;
  if (call == h->fail_at || (h->for_ever && call > h->fail_at)) return NULL;
  if (posix_memalign(&ptr, align < 8 ? 8 : align, bytes) != 0) return NULL;
  atomic_fetch_add(&h->live, 1);
  atomic_fetch_add(&h->bytes, (long)malloc_usable_size(ptr));
  return ptr;
}

static inline void host_free(void *self, void *ptr) {
  host *h = self;
  if (ptr != NULL) atomic_fetch_sub(&h->live, 1);
  if (ptr != NULL) atomic_fetch_sub(&h->bytes, (long)malloc_usable_size(ptr));
  free(ptr);
}

/* A program's use of a runtime of |h|'s memory, all of it given back but |out|,
 * which is kept past the runtime. */
typedef weir_status (*host_scenario)(host *h, uint64_t limit, weir_tensor **out,
                                     weir_error *err);

/* Runs |scenario| with the k-th allocation failing, and with all from the k-th
 * on, until it makes fewer than k: each time W6001 or success, and no block is
 * left. */
static inline void sweep(host_scenario scenario, bool for_ever) {
  for (long k = 1;; k++) {
    weir_error err = WEIR_ERROR_INIT;
    host h = {.fail_at = k, .for_ever = for_ever};
    weir_tensor *out = NULL;
    weir_status s = scenario(&h, 0, &out, &err);
    weir_tensor_release(out);
    if (h.live != 0) fail_msg("allocation %ld: %ld blocks are left", k, h.live);
    if (s == WEIR_OK && h.calls < k) {
      assert_true(k > 50);
      return;
    }
    if (s != WEIR_OK && strcmp(err.id, "W6001") != 0)
      fail_msg("allocation %ld: %s %s", k, err.id, err.message);
  }
}

#endif
