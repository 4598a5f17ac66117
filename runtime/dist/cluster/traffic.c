/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/cluster/traffic.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/quantity.h"
#include "runtime/net/wire.h"
#include "runtime/net/wire_bulk.h"

static void add(weir_traffic *t, uint64_t values, uint64_t bytes) {
  if (values > 0)
    atomic_fetch_add_explicit(&t->values, values, memory_order_relaxed);
  if (bytes > 0)
    atomic_fetch_add_explicit(&t->bytes, bytes, memory_order_relaxed);
}

/* Errors are no values, and a large one comes by bulk frames. */
static void add_values(weir_traffic *t, size_t count,
                       Weir__V1__Value *const *values) {
  uint64_t n = 0, bytes = 0;
  for (size_t i = 0; i < count; i++) {
    const Weir__V1__Value *v = values[i];
    if (v->kind == WEIR__V1__VALUE_KIND__BLOB || v->error != NULL ||
        v->total != 0)
      continue;
    n++;
    bytes += v->data.len;
  }
  add(t, n, bytes);
}

void weir_traffic_control(weir_traffic *t, const Weir__V1__Control *m) {
  if (m->body_case == WEIR__V1__CONTROL__BODY_VALUES)
    add_values(t, m->values->n_values, m->values->values);
  else if (m->body_case == WEIR__V1__CONTROL__BODY_RUN_STEP)
    add_values(t, m->run_step->n_feeds, m->run_step->feeds);
  else if (m->body_case == WEIR__V1__CONTROL__BODY_STEP_REPLY)
    add_values(t, m->step_reply->n_fetches, m->step_reply->fetches);
}

void weir_traffic_bulk(weir_traffic *t, const weir_net_frame *frame) {
  weir_bulk bulk;
  if (!weir_bulk_peek(frame, &bulk) || bulk.size == 0 ||
      bulk.kind == (uint32_t)WEIR__V1__VALUE_KIND__BLOB)
    return;
  add(t, bulk.offset == 0, bulk.size);
}

void weir_traffic_clear(weir_traffic *t) {
  atomic_store_explicit(&t->values, 0, memory_order_relaxed);
  atomic_store_explicit(&t->bytes, 0, memory_order_relaxed);
}

const char *weir_traffic_print(weir_traffic *t, char text[WEIR_TRAFFIC_TEXT]) {
  char size[WEIR_QUANTITY_TEXT];
  uint64_t values = atomic_load_explicit(&t->values, memory_order_relaxed);
  uint64_t bytes = atomic_load_explicit(&t->bytes, memory_order_relaxed);
  snprintf(text, WEIR_TRAFFIC_TEXT, "%" PRIu64 " value%s, %s", values,
           values == 1 ? "" : "s",
           weir_quantity_print_bytes((int64_t)bytes, size));
  return text;
}
