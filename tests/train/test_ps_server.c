/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ps_check.h"
#include "tests/train/ps_hub.h"

/* A parameter server with tensors: whatever the number of servers, its values
 * are those of one process, bit for bit; pulls lend values that do not change;
 * what memory runs out of ends cleanly. */

/* ---- The bits of one process */

static void async_has_the_bits_of_one_process(void **state) {
  (void)state;
  for (uint32_t servers = 1; servers <= 4; servers++) {
    hub h;
    hub_open_cut(&h, PS_NET, servers, 0, servers < 3 ? 0 : 4 * servers);
    hub_start_all(&h);
    hub_begin(&h);
    hub_compare(&h, 0);
    for (uint64_t i = 0; i < 6; i++) {
      hub_run(&h, i % 2, i / 2 + 1);
      hub_compare(&h, i + 1);
    }
    hub_close(&h);
  }
}

/* Pushes on one version: rate and step follow from it, not from the order. */
static void stale_pushes_have_their_own_rate(void **state) {
  (void)state;
  hub h;
  weir_exec_fetch out[2][PAIR_VALUES];
  hub_open(&h, PS_NET, 1, 0);
  hub_start_all(&h);
  hub_begin(&h);
  for (uint32_t w = 0; w < 2; w++) {
    weir_exec_feed joined[18], worker[18 + PAIR_VALUES];
    h.pair.runs = w;
    uint32_t count = pair_feeds(&h.pair, joined, worker);
    pair_compute(&h.pair, worker, count, out[w]);
    for (uint32_t i = 0; i < count; i++) weir_tensor_unref(joined[i].tensor);
  }
  h.pair.runs = 0; /* both were pulled before any update */
  for (uint32_t w = 0; w < 2; w++) {
    weir_ps_message m = {.worker = w, .incarnation = 1, .seq = 1, .run = w};
    pair_push(&h.pair, 0, out[w]);
    hub_push(&h, 0, m, out[w]);
  }
  for (uint64_t i = 0; i < 2; i++) {
    hub_letter *letter = hub_expect(&h, WEIR_PS_WORKER, WEIR_PS_PUSHED);
    assert_int_equal(letter->m.staleness, i);
    hub_done(letter);
  }
  hub_letter *letter = hub_fetch(&h, 0);
  const weir_ps_lists *l = &h.job->servers[0];
  for (uint32_t i = 0; i < l->held_count; i++) {
    weir_tensor *want = NULL;
    weir_node_id node = h.job->split->updates[0].vars[l->held[i]];
    if (node == UINT32_MAX) continue; /* the version */
    assert_ok(weir_exec_variable_get(h.pair.servers[0], node, &want, &h.err),
              &h.err);
    assert_memory_equal(want->data, letter->values->pieces[i].data,
                        want->bytes);
    weir_tensor_unref(want);
  }
  hub_done(letter);
  for (int w = 0; w < 2; w++) hub_forget(&h, out[w]);
  hub_close(&h);
}

/* Updates are divided by their staleness. */
static void open_inverse(hub *h, const char *mode, uint32_t servers) {
  hub_open_as(h, PS_NET "  lr: {scale: {'*/b': 0.3}}\n", mode,
              (weir_split_options){.servers = servers,
                                   .clip_at_worker = true,
                                   .given_step = true,
                                   .given_staleness = true});
}

/* A push says on which version it was computed: forged, its update is divided
 * by the number of those since. */
static void stale_pushes_change_less(void **state) {
  (void)state;
  static const char *const kModes[] = {
      "async(staleness_lr=inverse)",
      "bounded(staleness=9, staleness_lr=inverse)"};
  for (uint32_t servers = 1; servers <= 3; servers++)
    for (int m = 0; m < 2; m++) {
      hub h;
      open_inverse(&h, kModes[m], servers);
      hub_start_all(&h);
      hub_begin(&h);
      for (uint64_t i = 0; i < 7; i++) {
        h.pair.staleness = (int64_t)(i * 5 % (i + 1)); /* 0 1 1 3 0 1 2 */
        hub_run(&h, i % 2, i / 2 + 1);
        hub_compare(&h, i + 1);
      }
      hub_close(&h);
    }
}

/* Server 0 tells the chief of a step before the others have heard of it:
 * whoever wants values of that step waits for them, but not for one that
 * servers went back behind. */
static void values_of_a_step_are_waited_for(void **state) {
  (void)state;
  hub h;
  weir_exec_fetch out[PAIR_VALUES];
  hub_open(&h, PS_NET, 2, 1);
  hub_start_all(&h);
  hub_begin(&h);
  hub_compute(&h, out);
  for (uint32_t k = 0; k < 2; k++)
    hub_push(&h, k,
             (weir_ps_message){.incarnation = 1 + (h.epoch << 24), .lease = 1},
             out);
  hub_wait(&h, WEIR_PS_CHIEF, WEIR_PS_COMMITTED);
  weir_ps_message m = {.kind = WEIR_PS_FETCH,
                       .epoch = h.epoch,
                       .life = h.epoch,
                       .version = 1,
                       .request = 3};
  hub_tell(&h, WEIR_PS_CHIEF, 0, 1, &m);
  assert_null(hub_find(&h, WEIR_PS_CHIEF, WEIR_PS_FETCHED));
  hub_letter *letter = hub_expect(&h, WEIR_PS_CHIEF, WEIR_PS_FETCHED);
  assert_int_equal(letter->m.version, 1);
  assert_int_equal(letter->m.life, h.epoch);
  hub_done(letter);
  hub_compare(&h, 1);
  m.version = 2;
  hub_tell(&h, WEIR_PS_CHIEF, 0, 1, &m);
  hub_begin(&h);
  letter = hub_find(&h, WEIR_PS_CHIEF, WEIR_PS_FETCHED);
  assert_non_null(letter);
  assert_false(letter->m.newer);
  hub_done(letter);
  hub_tell(&h, WEIR_PS_CHIEF, 0, 1, &m); /* of the life before */
  letter = hub_expect(&h, WEIR_PS_CHIEF, WEIR_PS_FETCHED);
  assert_int_equal(letter->m.life, h.epoch);
  hub_done(letter);
  hub_forget(&h, out);
  hub_close(&h);
}

static void compare_steps(const char *text, uint32_t servers, uint32_t n,
                          uint32_t cut) {
  hub h;
  hub_open_cut(&h, text, servers, n, cut);
  hub_start_all(&h);
  hub_begin(&h);
  for (uint64_t t = 0; t < 3; t++) {
    hub_step_of(&h, n);
    hub_compare(&h, t + 1);
  }
  hub_close(&h);
}

static void sync_has_the_bits_of_accumulation(void **state) {
  (void)state;
  for (uint32_t servers = 1; servers <= 3; servers++)
    for (uint32_t n = 1; n <= 3; n++) {
      compare_steps(PS_NET, servers, n, n == 2 ? 0 : 24);
      compare_steps(PS_NET "  average: examples\n", servers, n,
                    n == 2 ? 0 : 24);
    }
}

/* No server has all gradients: the length of all has the same bits. */
static void a_norm_over_servers(void **state) {
  (void)state;
  for (uint32_t servers = 1; servers <= 3; servers++)
    for (uint32_t n = 1; n <= 2; n++) {
      hub h;
      hub_open(&h, PS_NET "  clip: {global_norm: 0.05}\n", servers, n);
      assert_true(h.job->config.norm == (servers > 1));
      hub_start_all(&h);
      hub_begin(&h);
      for (uint64_t t = 0; t < 3; t++) {
        hub_step_of(&h, n);
        hub_compare(&h, t + 1);
      }
      hub_begin(&h); /* shares of an older life do not count */
      hub_close(&h);
    }
}

/* A share arrives again, or late, or too long: nothing comes of it. */
static void shares_that_do_not_count(void **state) {
  (void)state;
  hub h;
  weir_ps_place place;
  hub_open(&h, PS_NET "  clip: {global_norm: 0.05}\n", 2, 1);
  hub_start_all(&h);
  hub_begin(&h);
  weir_ps_task from = hub_task(WEIR_PS_SERVER, 0);
  hub_port *p = &h.ports[1];
  for (uint64_t t = 0; t < 2; t++) {
    weir_ps_message m = {.kind = WEIR_PS_NORM, .life = h.epoch + t, .step = 7};
    assert_ok(p->events.receive(p->events.self, from, &m, &place, &h.err),
              &h.err);
    assert_int_equal(place.count, 1);
    memset(place.pieces[0].data, 1, place.pieces[0].bytes);
    if (t == 0) p->events.unreceived(p->events.self, place.data);
    if (t == 0) continue;
    m.data = place.data;
    hub_tell(&h, WEIR_PS_SERVER, 0, 1, &m);
  }
  weir_ps_message bare = {.kind = WEIR_PS_NORM, .life = h.epoch};
  hub_tell(&h, WEIR_PS_SERVER, 0, 1, &bare);
  assert_int_equal(p->gave_up, 1);
  assert_string_equal(p->failure.id, "W7011");
  hub_step_of(&h, 1);
  hub_compare(&h, 1);
  hub_close(&h);
  hub_open(&h, PS_NET, 2, 1);
  hub_start_all(&h);
  weir_ps_message m = {.kind = WEIR_PS_NORM};
  p = &h.ports[1];
  assert_error(p->events.receive(p->events.self, from, &m, &place, &h.err),
               &h.err, "W7011");
  hub_close(&h);
}

/* A step that is not whole changes nothing that is lent; a restore takes all of
 * it back, whatever was computed of it. */
static void a_restore_forgets_half_a_step(void **state) {
  (void)state;
  hub h;
  hub_open(&h, PS_NET, 2, 3);
  hub_start_all(&h);
  hub_begin(&h);
  for (uint32_t k = 0; k < 2; k++) {
    weir_exec_fetch wrong[PAIR_VALUES];
    weir_exec_feed joined[18], worker[18 + PAIR_VALUES];
    h.pair.runs = 17;
    uint32_t count = pair_feeds(&h.pair, joined, worker);
    pair_compute(&h.pair, worker, count, wrong);
    for (uint32_t i = 0; i < count; i++) weir_tensor_unref(joined[i].tensor);
    weir_ps_message m = {.incarnation = 1, .lease = 1, .k = k};
    hub_push(&h, 0, m, wrong);
    hub_push(&h, 1, m, wrong);
    hub_forget(&h, wrong);
  }
  h.pair.runs = 0;
  hub_begin(&h);
  hub_step_of(&h, 3);
  hub_compare(&h, 1);
  hub_close(&h);
}

/* ---- Values in and out */

static hub_letter *pull(hub *h, uint32_t server, uint64_t version) {
  weir_ps_message m = {.kind = WEIR_PS_PULL,
                       .life = h->epoch,
                       .incarnation = 1 + (h->epoch << 24),
                       .version = version};
  hub_tell(h, WEIR_PS_WORKER, 0, server, &m);
  return hub_expect(h, WEIR_PS_WORKER, WEIR_PS_PULLED);
}

/* What no step changes is sent to those that have nothing. */
static void fixed_values_are_sent_once(void **state) {
  (void)state;
  static const char kText[] =
      "weir: 1\ninputs: {x: 'f32[4]'}\nnodes:\n"
      "  f: var([3], init=uniform(-1, 1), trainable=false)\n"
      "  w: var([], init=ones())\n"
      "  loss: add(mean(mul(x, w)), reduce_sum(f))\n"
      "outputs: [loss]\n"
      "train:\n  minimize: loss\n  optimizer: sgd(lr=1)\n";
  hub h;
  hub_open(&h, kText, 1, 0);
  hub_start_all(&h);
  hub_begin(&h);
  const weir_ps_lists *l = &h.job->servers[0];
  assert_int_equal(l->pull_count, 2);
  assert_int_equal(l->changing_count, 1);
  assert_true(weir_sv_is(h.job->split->vars[l->pulls[1]].name, "f"));
  hub_letter *all = pull(&h, 0, WEIR_PS_NONE);
  assert_true(all->m.ok && all->m.newer);
  assert_int_equal(all->values->count, 2);
  assert_int_equal(all->values->pieces[1].bytes, 12);
  hub_run(&h, 0, 1);
  hub_letter *next = pull(&h, 0, 0);
  assert_true(!next->m.ok && next->m.newer);
  assert_int_equal(next->values->count, 1);
  assert_int_equal(next->values->pieces[0].bytes, 4);
  hub_done(all);
  hub_done(next);
  hub_close(&h);
}

/* Values are lent until they are sent, while updates go on. */
static void pulled_values_stay(void **state) {
  (void)state;
  hub h;
  hub_open(&h, PS_NET, 1, 0);
  hub_start_all(&h);
  hub_begin(&h);
  const weir_ps_lists *l = &h.job->servers[0];
  hub_letter *lent[3];
  void *copies[3][PAIR_VALUES];
  for (int n = 0; n < 3; n++) {
    lent[n] = pull(&h, 0, WEIR_PS_NONE);
    assert_true(lent[n]->m.newer);
    assert_int_equal(lent[n]->m.version, n);
    assert_int_equal(lent[n]->values->count, l->pull_count);
    for (uint32_t i = 0; i < l->pull_count; i++) {
      const weir_ps_piece *p = &lent[n]->values->pieces[i];
      assert_int_equal(p->bytes, weir_ps_var_bytes(h.job, l->pulls[i]));
      copies[n][i] = malloc(p->bytes);
      memcpy(copies[n][i], p->data, p->bytes);
    }
    hub_run(&h, 0, (uint64_t)n + 1);
  }
  bool changed = false;
  for (int n = 0; n < 3; n++)
    for (uint32_t i = 0; i < l->pull_count; i++) {
      const weir_ps_piece *p = &lent[n]->values->pieces[i];
      assert_memory_equal(p->data, copies[n][i], p->bytes);
      if (n > 0) changed |= memcmp(p->data, copies[n - 1][i], p->bytes) != 0;
    }
  assert_true(changed);
  for (int n = 0; n < 3; n++) {
    for (uint32_t i = 0; i < l->pull_count; i++) free(copies[n][i]);
    hub_done(lent[n]);
  }
  hub_letter *same = pull(&h, 0, 3); /* it has them already */
  assert_false(same->m.newer);
  assert_null(same->values);
  hub_done(same);
  hub_close(&h);
}

/* What came in part is given back; what is strange ends the link. */
static void values_that_do_not_come(void **state) {
  (void)state;
  hub h;
  weir_ps_place place, again;
  hub_open(&h, PS_NET, 1, 0);
  hub_start_all(&h);
  hub_begin(&h);
  hub_port *p = &h.ports[0];
  weir_ps_task worker = hub_task(WEIR_PS_WORKER, 0);
  weir_ps_message m = {.kind = WEIR_PS_PUSH, .life = h.epoch, .seq = 1};
  assert_ok(p->events.receive(p->events.self, worker, &m, &place, &h.err),
            &h.err);
  p->events.unreceived(p->events.self, place.data);
  assert_ok(p->events.receive(p->events.self, worker, &m, &again, &h.err),
            &h.err);
  assert_ptr_equal(place.data, again.data);
  p->events.unreceived(p->events.self, again.data);
  m.kind = WEIR_PS_REPORT;
  assert_error(p->events.receive(p->events.self, worker, &m, &place, &h.err),
               &h.err, "W7011");
  m.kind = WEIR_PS_PUSH; /* without its values */
  p->events.message(p->events.self, worker, &m);
  assert_int_equal(p->gave_up, 1);
  assert_string_equal(p->failure.id, "W7011");
  /* A push of another life is given back, and counts nothing. */
  assert_ok(p->events.receive(p->events.self, worker, &m, &place, &h.err),
            &h.err);
  m.life = 0;
  m.data = place.data;
  p->events.message(p->events.self, worker, &m);
  assert_int_equal(weir_ps_server_count(weir_ps_host_machine(p->host)).refused,
                   1);
  hub_run(&h, 0, 1);
  hub_compare(&h, 1);
  hub_close(&h);
}

/* A burst of large pushes leaves one buffer behind, the spare of w. */
static void buffers_of_a_burst_go(void **state) {
  (void)state;
  static const char kText[] =
      "weir: 1\ninputs: {x: 'f32[4]', label: 'i32[4]'}\nnodes:\n"
      "  w: var([6000000], init=zeros())\n"
      "  loss: mul(mean(x), reduce_sum(w))\noutputs: [loss]\n"
      "train:\n  minimize: loss\n  optimizer: sgd(lr=1)\n";
  hub h;
  weir_ps_place places[6];
  hub_open(&h, kText, 1, 0);
  hub_start_all(&h);
  hub_port *p = &h.ports[0];
  weir_counted_allocator *memory = &h.pair.world.memory;
  int64_t before = atomic_load(&memory->live_bytes);
  weir_ps_message m = {.kind = WEIR_PS_PUSH};
  weir_ps_task worker = hub_task(WEIR_PS_WORKER, 0);
  for (int i = 0; i < 6; i++)
    assert_ok(p->events.receive(p->events.self, worker, &m, &places[i], &h.err),
              &h.err);
  assert_true(atomic_load(&memory->live_bytes) - before > 6 * 24000000);
  for (int i = 0; i < 6; i++)
    p->events.unreceived(p->events.self, places[i].data);
  int64_t left = atomic_load(&memory->live_bytes) - before;
  assert_true(left >= 24000000 && left < 2 * 24000000);
  for (int i = 0; i < 2; i++) { /* and it goes around */
    assert_ok(p->events.receive(p->events.self, worker, &m, &places[i], &h.err),
              &h.err);
    assert_true(i == 1 ||
                atomic_load(&memory->live_bytes) - before < 2 * 24000000);
  }
  for (int i = 0; i < 2; i++)
    p->events.unreceived(p->events.self, places[i].data);
  hub_close(&h);
}

/* ---- Without a state, without a folder, the end */

static void nothing_is_told_before_a_state(void **state) {
  (void)state;
  hub h;
  hub_open(&h, PS_NET, 1, 0);
  hub_start_all(&h);
  hub_letter *letter = hub_fetch(&h, 0);
  assert_false(letter->m.newer);
  assert_null(letter->values);
  hub_done(letter);
  hub_close(&h);
}

static void without_a_folder_the_job_begins_again(void **state) {
  (void)state;
  hub h;
  hub_open(&h, PS_NET, 2, 2);
  hub_start_all(&h);
  hub_begin(&h);
  hub_step_of(&h, 2);
  assert_true(hub_save(&h));
  hub_kill(&h, 1);
  hub_start(&h, 1);
  hub_begin(&h);
  hub_letter *letter = hub_fetch(&h, 1);
  assert_int_equal(letter->m.version, 0);
  hub_done(letter);
  hub_close(&h);
  hub_open(&h, PS_NET, 2, 2); /* and these are the first values */
  hub_start_all(&h);
  hub_begin(&h);
  hub_compare(&h, 0);
  hub_close(&h);
}

static void over_ends_a_server_once(void **state) {
  (void)state;
  hub h;
  hub_open(&h, PS_NET, 1, 0);
  hub_start_all(&h);
  hub_begin(&h);
  weir_ps_message m = {.kind = WEIR_PS_OVER, .epoch = h.epoch - 1};
  hub_tell(&h, WEIR_PS_CHIEF, 0, 0, &m);
  assert_int_equal(h.ports[0].over, 0); /* of a chief that was replaced */
  m.epoch = h.epoch;
  hub_tell(&h, WEIR_PS_CHIEF, 0, 0, &m);
  hub_tell(&h, WEIR_PS_CHIEF, 0, 0, &m);
  assert_int_equal(h.ports[0].over, 1);
  assert_string_equal(h.ports[0].failure.id, "");
  hub_close(&h);
}

/* ---- Memory */

static void create_out_of_memory(hub *h) {
  weir_counted_allocator *memory = &h->pair.world.memory;
  int64_t live = atomic_load(&memory->live_blocks);
  for (uint64_t k = 1;; k++) {
    memory->fail_at = atomic_load(&memory->calls) + k;
    weir_status s = hub_create(h, 1);
    bool reached = atomic_load(&memory->calls) >= memory->fail_at;
    memory->fail_at = 0;
    if (!reached) {
      assert_ok(s, &h->err);
      break;
    }
    assert_true(s != WEIR_OK);
    assert_string_equal(h->err.id, "W6001");
    assert_null(h->ports[1].host);
    assert_int_equal(atomic_load(&memory->live_blocks), live);
  }
  hub_close(h);
}

static void out_of_memory_is_clean(void **state) {
  (void)state;
  hub h;
  hub_open_cut(&h, PS_NET, 2, 2, 24);
  create_out_of_memory(&h);
  open_inverse(&h, "async(staleness_lr=inverse)", 2);
  create_out_of_memory(&h);
}

/* Wherever memory ends in a run, the server says so and ends, or the link does;
 * it does not go on with a part of an update. */
static void updates_out_of_memory(void **state) {
  (void)state;
  for (uint64_t k = 1, good = 0; good < 2; k += 3) {
    hub h;
    weir_exec_fetch out[PAIR_VALUES];
    open_inverse(&h, "async(staleness_lr=inverse)", 1);
    hub_start_all(&h);
    hub_begin(&h);
    hub_compute(&h, out);
    weir_ps_message m = {.incarnation = 1 + (h.epoch << 24), .seq = 1};
    hub_port *p = &h.ports[0];
    weir_counted_allocator *memory = &h.pair.world.memory;
    weir_ps_place place;
    m.kind = WEIR_PS_PUSH;
    m.life = h.epoch;
    memory->fail_at = atomic_load(&memory->calls) + k;
    weir_status s = p->events.receive(
        p->events.self, hub_task(WEIR_PS_WORKER, 0), &m, &place, &h.err);
    if (s == WEIR_OK) {
      for (uint32_t i = 0; i < place.count; i++)
        memcpy(place.pieces[i].data,
               out[h.job->servers[0].pushes[i] + 1].tensor->data,
               place.pieces[i].bytes);
      m.data = place.data;
      hub_tell(&h, WEIR_PS_WORKER, 0, 0, &m);
      while (p->over == 0 &&
             weir_ps_server_count(weir_ps_host_machine(p->host)).version == 0)
        hub_step(&h);
    } else {
      assert_string_equal(h.err.id, "W6001");
    }
    bool reached = atomic_load(&memory->calls) >= memory->fail_at;
    memory->fail_at = 0;
    if (p->over > 0) assert_string_equal(p->failure.id, "W6001");
    if (s == WEIR_OK && p->over == 0) {
      hub_compare(&h, 1);
      good += !reached;
    }
    hub_drop_letters(&h, 0);
    hub_forget(&h, out);
    hub_close(&h);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(async_has_the_bits_of_one_process),
      cmocka_unit_test(stale_pushes_have_their_own_rate),
      cmocka_unit_test(values_of_a_step_are_waited_for),
      cmocka_unit_test(stale_pushes_change_less),
      cmocka_unit_test(sync_has_the_bits_of_accumulation),
      cmocka_unit_test(a_norm_over_servers),
      cmocka_unit_test(shares_that_do_not_count),
      cmocka_unit_test(a_restore_forgets_half_a_step),
      cmocka_unit_test(fixed_values_are_sent_once),
      cmocka_unit_test(pulled_values_stay),
      cmocka_unit_test(values_that_do_not_come),
      cmocka_unit_test(buffers_of_a_burst_go),
      cmocka_unit_test(nothing_is_told_before_a_state),
      cmocka_unit_test(without_a_folder_the_job_begins_again),
      cmocka_unit_test(over_ends_a_server_once),
      cmocka_unit_test(out_of_memory_is_clean),
      cmocka_unit_test(updates_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
