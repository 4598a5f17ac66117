/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "placement/solve/chain.h"
#include "placement/solve/item_order.h"
#include "tests/check.h"

/* Orders of items, and splits of them. */

enum { LAYERS = 12, DEVICES = 3 };

/* Layers in a row, each a group of weights, a forward and a backward node. The
 * weights are numbered first, and not in the order of the layers. A cut between
 * two layers costs 1 each way, weights that are not at home 50. */
static weir_place_problem *make_training(weir_error *err) {
  weir_place_builder *b = NULL;
  weir_place_problem *p = NULL;
  int64_t none = 0, ten = 10;
  if (weir_place_builder_create(weir_allocator_system(), 1, &b, err))
    return NULL;
  for (uint32_t d = 0; d < DEVICES; d++)
    weir_place_add_device(b,
                          &(weir_place_device){WEIR_SV_LIT("d"), 0, INT64_MAX});
  weir_place_connect_all(b, &(weir_place_link){0, 1000000, false});
  for (uint32_t i = 0; i < LAYERS; i++) {
    weir_place_node_spec weights = {.cost = &none, .group = i * 5 % LAYERS};
    weir_place_add_tensor(b, weir_place_add_node(b, &weights), 50);
  }
  for (uint32_t i = 0; i < 2 * LAYERS; i++) {
    uint32_t layer = i < LAYERS ? i : 2 * LAYERS - 1 - i;
    weir_place_node_spec node = {.cost = &ten, .group = layer};
    uint32_t id = weir_place_add_node(b, &node);
    for (uint32_t w = 0; w < LAYERS; w++)
      if (w * 5 % LAYERS == layer) weir_place_add_use(b, id, w);
    if (i > 0) weir_place_add_use(b, id, LAYERS + i - 1);
    if (i >= LAYERS) weir_place_add_use(b, id, LAYERS + layer);
    weir_place_add_tensor(b, id, 1);
  }
  weir_place_builder_finish(b, &p, err);
  weir_place_builder_release(b);
  return p;
}

static void each_order_has_every_item_once(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = make_training(&err);
  assert_non_null(p);
  weir_items *items = NULL;
  weir_item_orders *orders = NULL;
  assert_ok(weir_items_create(weir_allocator_system(), p, &items, &err), &err);
  assert_int_equal(items->count, LAYERS);
  assert_ok(weir_item_orders_create(items, p->tensor_bytes, &orders, &err),
            &err);
  for (uint32_t nth = 0; nth < 40; nth++) {
    uint32_t order[LAYERS], seen = 0;
    weir_item_order_make(orders, nth, order);
    for (uint32_t i = 0; i < LAYERS; i++) seen |= 1u << order[i];
    assert_int_equal(seen, (1u << LAYERS) - 1);
  }
  weir_item_orders_release(orders);
  weir_items_release(items);
  weir_place_problem_release(p);
}

/* Four layers to a device: 4 * 20, and copies at both ends of the middle one.
 * Where items stood at their first node the weights decided, and no stretch
 * was cheap. */
static void weights_and_backward_nodes_do_not_tear_layers(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = make_training(&err);
  assert_non_null(p);
  weir_items *items = NULL;
  assert_ok(weir_items_create(weir_allocator_system(), p, &items, &err), &err);
  int64_t cap[DEVICES] = {INT64_MAX, INT64_MAX, INT64_MAX}, load[DEVICES];
  uint32_t device[WEIR_CHAIN_SPLITS * LAYERS], of_node[3 * LAYERS];
  uint32_t stamp[DEVICES];
  weir_chain_options o = {.cap = cap, .orders = 1};
  weir_chain_splits splits = {.device = device};
  assert_ok(weir_chain_split(items, &o, &splits, &err), &err);
  assert_true(splits.count > 0);
  for (uint32_t n = 0; n < p->node_count; n++)
    of_node[n] = device[items->of[n]];
  int64_t moved;
  assert_int_equal(weir_load_measure(p, of_node, load, stamp, &moved),
                   splits.value[0]);
  assert_int_equal(splits.value[0], 84);
  weir_items_release(items);
  weir_place_problem_release(p);
}

/* The best splits come first, and no value twice. */
static void splits_are_sorted(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = make_training(&err);
  assert_non_null(p);
  weir_items *items = NULL;
  assert_ok(weir_items_create(weir_allocator_system(), p, &items, &err), &err);
  int64_t cap[DEVICES] = {INT64_MAX, INT64_MAX, INT64_MAX};
  uint32_t device[WEIR_CHAIN_SPLITS * LAYERS];
  weir_chain_options o = {.cap = cap, .orders = 64};
  weir_chain_splits splits = {.device = device};
  assert_ok(weir_chain_split(items, &o, &splits, &err), &err);
  for (uint32_t k = 1; k < splits.count; k++)
    assert_true(splits.value[k - 1] < splits.value[k]);
  weir_items_release(items);
  weir_place_problem_release(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_order_has_every_item_once),
      cmocka_unit_test(weights_and_backward_nodes_do_not_tear_layers),
      cmocka_unit_test(splits_are_sorted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
