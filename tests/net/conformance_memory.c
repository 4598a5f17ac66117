/* SPDX-License-Identifier: Apache-2.0
 *
 * Lack of memory at each allocation in turn, once and for ever. */
#include <stdlib.h>
#include <string.h>

#include "tests/net/conformance_parts.h"
#include "tests/net/peers.h"

static void count_up(void *self) {
  atomic_fetch_add((atomic_int *)self, 1);
}

/* Polls until frames have come; lack of memory once is got over. */
static bool await(net *n, size_t frames) {
  while (n->a.count < frames || n->b.count < frames) {
    for (int i = 0; i < 2; i++) {
      weir_status s = peer_poll(n, i == 0 ? &n->a : &n->b, true);
      if (s != WEIR_OK) assert_string_equal(n->err.id, "W6001");
      if (s != WEIR_OK && n->counted.fail_forever) return false;
    }
    if (n->a.closed + n->b.closed > 0) return false;
  }
  return true;
}

static weir_status talk(net *n, weir_fixture *f, atomic_int *released,
                        int *lent) {
  static const uint8_t kBytes[3000] = {1, 2, 3};
  WEIR_TRY(net_try(n, f, NULL));
  WEIR_TRY(n->a.t->vt->connect(n->a.t, weir_sv_from(n->b.address), &n->a.c,
                               &n->err));
  weir_net_piece list[2] = {{kBytes, 1000}, {kBytes, 2000, count_up, released}};
  WEIR_TRY(n->a.t->vt->send(n->a.t, n->a.c, list, 2, &n->err));
  ++*lent;
  while (n->b.connected == 0) {
    weir_status a = peer_poll(n, &n->a, true), b = peer_poll(n, &n->b, true);
    if (a != WEIR_OK || b != WEIR_OK) assert_string_equal(n->err.id, "W6001");
    if ((a != WEIR_OK || b != WEIR_OK) && n->counted.fail_forever)
      return a != WEIR_OK ? a : b;
    if (n->a.closed > 0) return WEIR_OK;
  }
  WEIR_TRY(n->b.t->vt->send(n->b.t, n->b.c, list, 2, &n->err));
  ++*lent;
  if (await(n, 1)) {
    assert_int_equal(n->a.frames[0].size, 3000);
    assert_int_equal(n->b.frames[0].size, 3000);
  }
  return WEIR_OK;
}

/* Whether the k-th allocation was reached. */
static bool attempt(weir_fixture *f, uint64_t k, bool forever) {
  net *n = calloc(1, sizeof *n);
  atomic_int released = 0;
  int lent = 0;
  weir_counted_allocator_init(&n->counted, NULL);
  n->counted.fail_at = k;
  n->counted.fail_forever = forever;
  weir_status s = talk(n, f, &released, &lent);
  if (s != WEIR_OK) assert_string_equal(n->err.id, "W6001");
  bool reached = atomic_load(&n->counted.calls) >= k;
  net_close(n);
  assert_int_equal(atomic_load(&released), lent);
  return reached;
}

void conformance_memory(void **state) {
  for (int forever = 0; forever < 2; forever++) {
    uint64_t k = 1;
    while (attempt(*state, k, forever != 0)) k++;
    assert_true(k > 3);
  }
}
