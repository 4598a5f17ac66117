/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ps_check.h"
#include "tests/train/ps_hub.h"

/* First values that come with the chief's order to restore: servers go on from
 * them, at their step, as from the graph's own; again after a server's death;
 * and what memory runs out of ends cleanly. */

/* Sends server |k| the values of one process as it is now, at |step|. */
static weir_status order(hub *h, uint32_t k, uint64_t step) {
  const weir_split *s = h->job->split;
  const weir_ps_lists *l = &h->job->servers[k];
  hub_port *p = &h->ports[k];
  weir_ps_place place = {0};
  weir_ps_message m = {.kind = WEIR_PS_RESTORE,
                       .epoch = h->epoch,
                       .version = step,
                       .newer = true};
  WEIR_TRY(p->events.receive(p->events.self, hub_task(WEIR_PS_CHIEF, 0), &m,
                             &place, &h->err));
  assert_int_equal(place.count, l->held_count);
  for (uint32_t i = 0; i < place.count; i++) {
    weir_tensor *t = NULL;
    weir_node_id id =
        weir_graph_find_node(h->pair.joined->graph, s->vars[l->held[i]].name);
    assert_ok(weir_exec_variable_get(h->pair.one, id, &t, &h->err), &h->err);
    const weir_split_var *v = &s->vars[l->held[i]];
    assert_int_equal(v->bytes, place.pieces[i].bytes);
    memcpy(place.pieces[i].data, (char *)t->data + v->rows.offset, v->bytes);
    weir_tensor_unref(t);
  }
  m.data = place.data;
  hub_tell(h, WEIR_PS_CHIEF, 0, k, &m);
  return WEIR_OK;
}

/* All servers begin at |step|; server 0's ledger deals from there on. */
static void begin(hub *h, uint64_t step) {
  hub_claim(h, 77 + h->epoch);
  for (uint32_t k = 0; k < h->servers; k++) {
    assert_ok(order(h, k, step), &h->err);
    hub_letter *letter = hub_expect(h, WEIR_PS_CHIEF, WEIR_PS_RESTORED);
    assert_true(letter->m.ok);
    assert_int_equal(letter->m.version, step);
    if (k == 0) {
      const weir_ps_ledger *l = letter->m.ledger;
      assert_non_null(l);
      assert_int_equal(l->cursor, step);
      assert_int_equal(l->base, h->async ? 0 : step);
      assert_true(l->limit >= step);
    }
    hub_done(letter);
  }
  hub_compare(h, step);
}

static void sync_goes_on(void **state) {
  (void)state;
  for (uint32_t servers = 1; servers <= 3; servers++) {
    hub h;
    hub_open_cut(&h, PS_NET, servers, 2, servers == 2 ? 0 : 20);
    hub_start_all(&h);
    for (int i = 0; i < 6; i++) hub_skip(&h);
    begin(&h, 3);
    hub_step_of(&h, 2);
    hub_compare(&h, 4);
    hub_close(&h);
  }
}

static void async_goes_on(void **state) {
  (void)state;
  for (uint32_t servers = 1; servers <= 3; servers++) {
    hub h;
    hub_open_cut(&h, PS_NET, servers, 0, servers == 2 ? 20 : 0);
    hub_start_all(&h);
    for (int i = 0; i < 5; i++) hub_skip(&h);
    begin(&h, 5);
    hub_run(&h, 0, 1);
    hub_compare(&h, 6);
    hub_close(&h);
  }
}

/* A server that dies before there is a generation, and a chief: the values are
 * sent again, and nothing of the steps between is left. */
static void a_dead_server_is_told_again(void **state) {
  (void)state;
  hub h;
  hub_open(&h, PS_NET, 2, 2);
  hub_start_all(&h);
  for (int i = 0; i < 4; i++) hub_skip(&h);
  begin(&h, 2);
  hub_step_of(&h, 2);
  hub_compare(&h, 3);
  hub_kill(&h, 1);
  hub_start(&h, 1);
  begin(&h, 3); /* a chief that reads a later checkpoint */
  hub_step_of(&h, 2);
  hub_compare(&h, 4);
  hub_kill(&h, 0);
  hub_kill(&h, 1);
  h.epoch = 0;
  hub_start_all(&h);
  begin(&h, 4);
  hub_compare(&h, 4);
  hub_close(&h);
}

/* An order of an older epoch changes nothing; neither do values that a link
 * loses on the way. */
static void what_does_not_count_is_dropped(void **state) {
  (void)state;
  hub h;
  hub_open(&h, PS_NET, 1, 2);
  hub_start_all(&h);
  hub_claim(&h, 7);
  for (int i = 0; i < 2; i++) hub_skip(&h);
  h.epoch--;
  assert_ok(order(&h, 0, 1), &h.err);
  hub_wait(&h, WEIR_PS_CHIEF, WEIR_PS_REFUSED);
  h.epoch++;
  hub_port *p = &h.ports[0];
  weir_ps_place place;
  weir_ps_message m = {.kind = WEIR_PS_RESTORE, .epoch = h.epoch};
  assert_ok(p->events.receive(p->events.self, hub_task(WEIR_PS_CHIEF, 0), &m,
                              &place, &h.err),
            &h.err);
  p->events.unreceived(p->events.self, place.data);
  begin(&h, 1);
  hub_close(&h);
}

/* Servers that have the graph's own first values take others. */
static void the_graphs_own_give_way(void **state) {
  (void)state;
  hub h;
  hub_open(&h, PS_NET, 2, 2);
  hub_start_all(&h);
  hub_begin(&h);
  hub_compare(&h, 0);
  for (int i = 0; i < 2; i++) hub_skip(&h);
  begin(&h, 1);
  hub_close(&h);
}

static void memory_may_run_out(void **state) {
  (void)state;
  int failed = 0;
  hub h;
  hub_open(&h, PS_NET, 1, 2);
  hub_start_all(&h);
  hub_claim(&h, 7);
  weir_counted_allocator *memory = &h.pair.world.memory;
  for (uint64_t k = 1;; k++) {
    weir_ps_place place;
    weir_ps_message m = {.kind = WEIR_PS_RESTORE, .epoch = h.epoch};
    hub_port *p = &h.ports[0];
    memory->fail_at = atomic_load(&memory->calls) + k;
    weir_status s = p->events.receive(
        p->events.self, hub_task(WEIR_PS_CHIEF, 0), &m, &place, &h.err);
    memory->fail_at = 0;
    if (s == WEIR_OK) {
      p->events.unreceived(p->events.self, place.data);
      break;
    }
    assert_string_equal(h.err.id, "W6001");
    h.err = (weir_error)WEIR_ERROR_INIT;
    failed++;
  }
  assert_true(failed > 3);
  begin(&h, 0);
  hub_close(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sync_goes_on),
      cmocka_unit_test(async_goes_on),
      cmocka_unit_test(a_dead_server_is_told_again),
      cmocka_unit_test(what_does_not_count_is_dropped),
      cmocka_unit_test(the_graphs_own_give_way),
      cmocka_unit_test(memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
