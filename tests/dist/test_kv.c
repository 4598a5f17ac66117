/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/dist/kv_world.h"

/* The machines of keys: each push counts once, whatever links do; order and
 * priority; barriers that count members; processes that die. */

enum { PUSHES = 10000 };

static uint32_t done_ok(const kv_op *ops, size_t count) {
  uint32_t n = 0;
  for (size_t i = 0; i < count; i++) {
    assert_true(ops[i].done);
    n += ops[i].op.status == WEIR_OK;
  }
  return n;
}

/* 10,000 pushes of four members to two servers, with a cut each few events. */
static void pushes_under_cuts_count_once(void **state) {
  (void)state;
  kv_world w;
  kv_op *ops = calloc(PUSHES, sizeof *ops);
  uint64_t want = 0, got = 0;
  kv_open(&w, 2, 4, 17);
  w.repeat_frames = true;
  for (uint32_t i = 0; i < PUSHES; i++) {
    uint32_t member = weir_mix_below(&w.random, 4);
    uint32_t server = weir_mix_below(&w.random, 2);
    char key = (char)('a' + weir_mix_below(&w.random, KV_KEYS));
    int32_t priority = (int32_t)weir_mix_below(&w.random, 3);
    kv_push(&w, member, server, key, priority, i, &ops[i]);
    want += i;
    for (int turns = 0; turns < 8; turns++) (void)kv_turn(&w);
    if (weir_mix_below(&w.random, 20) == 0) kv_cut(&w, member, server);
  }
  kv_settle(&w);
  assert_int_equal(done_ok(ops, PUSHES), PUSHES);
  assert_int_equal(w.applied, PUSHES);
  for (uint32_t s = 0; s < 2; s++)
    for (int k = 0; k < KV_KEYS; k++) got += w.sums[s][k];
  assert_int_equal(got, want);
  uint64_t duplicates = 0, applied = 0;
  for (uint32_t s = 0; s < 2; s++) {
    duplicates += weir_kv_keeper_count(w.keepers[s]).duplicates;
    applied += weir_kv_keeper_count(w.keepers[s]).applied;
  }
  assert_int_equal(applied, PUSHES);
  assert_true(w.cuts >= 200 && w.repeats > 100 && duplicates > 0);
  assert_int_equal(w.given_up, 0);
  kv_close(&w);
  free(ops);
}

/* Refusals are told after a cut as they are told without one. */
static void refusals_survive_cuts(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 50; seed++) {
    kv_world w;
    kv_op ops[100];
    kv_open(&w, 1, 1, seed);
    w.refuse_odd = true;
    for (int i = 0; i < 100; i++) {
      kv_push(&w, 0, 0, 'a', 0, 1, &ops[i]);
      for (int turns = 0; turns < 4; turns++) (void)kv_turn(&w);
      if (weir_mix_below(&w.random, 10) == 0) kv_cut(&w, 0, 0);
    }
    kv_settle(&w);
    for (int i = 0; i < 100; i++) {
      assert_true(ops[i].done);
      bool odd = ops[i].op.message.first % 2 == 1;
      assert_int_equal(ops[i].op.status != WEIR_OK, odd);
      if (odd) assert_string_equal(ops[i].op.err.id, "W7113");
    }
    assert_int_equal(w.sums[0][0], 50);
    kv_close(&w);
  }
}

/* Own pushes are seen, and order on a key is that of the calls. */
static void pulls_see_own_pushes(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 50; seed++) {
    kv_world w;
    kv_op pushes[20], pulls[20];
    kv_open(&w, 1, 2, seed);
    for (int i = 0; i < 20; i++) {
      kv_push(&w, 0, 0, 'a', 0, 1, &pushes[i]);
      kv_pull(&w, 0, 0, 'a', &pulls[i]);
      (void)kv_turn(&w);
      if (weir_mix_below(&w.random, 8) == 0) kv_cut(&w, 0, 0);
    }
    kv_settle(&w);
    for (int i = 0; i < 20; i++) {
      assert_true(pulls[i].done && pushes[i].done);
      assert_true(pulls[i].op.version >= (uint64_t)i + 1);
    }
    kv_close(&w);
  }
}

/* |window_bytes| lets 64 changes go; the rest waits and is overtaken. */
static void high_priority_overtakes(void **state) {
  (void)state;
  kv_world w;
  kv_op ops[300], urgent, same;
  uint32_t before = 0;
  kv_open(&w, 1, 1, 5);
  for (int i = 0; i < 300; i++)
    kv_push(&w, 0, 0, i == 299 ? 'c' : 'a', 0, 1, &ops[i]);
  kv_push(&w, 0, 0, 'b', 7, 1, &urgent);
  while (!urgent.done) assert_true(kv_turn(&w));
  for (int i = 0; i < 300; i++) before += ops[i].done;
  assert_true(before <= 2 * WEIR_KV_WINDOW);
  kv_push(&w, 0, 0, 'c', 9, 1, &same); /* takes the one before it along */
  while (!same.done) assert_true(kv_turn(&w));
  assert_true(ops[299].done);
  assert_false(ops[298].done);
  kv_settle(&w);
  assert_int_equal(done_ok(ops, 300), 300);
  kv_close(&w);
}

/* ---- Barriers */

static void barriers_count_members(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    kv_world w;
    kv_op ops[5][3];
    kv_open(&w, 1, 3, seed);
    for (int round = 0; round < 5; round++) {
      for (uint32_t m = 0; m < 2; m++) {
        kv_enter(&w, m, "epoch", 7, &ops[round][m]);
        for (int turns = 0; turns < 5; turns++) (void)kv_turn(&w);
        if (weir_mix_below(&w.random, 2) == 0) kv_cut(&w, m, 0);
      }
      kv_settle(&w); /* entries are sent again, and do not count twice */
      assert_false(ops[round][0].done || ops[round][1].done);
      kv_enter(&w, 2, "epoch", 7, &ops[round][2]);
      (void)kv_turn(&w);
      kv_cut(&w, weir_mix_below(&w.random, 3), 0);
      kv_settle(&w);
      assert_int_equal(done_ok(ops[round], 3), 3);
    }
    assert_int_equal(weir_kv_keeper_count(w.keepers[0]).barriers, 5);
    kv_close(&w);
  }
}

static void groups_and_names_stand_apart(void **state) {
  (void)state;
  kv_world w;
  kv_op ops[3][2], twice, other, alien;
  kv_open(&w, 1, 3, 3);
  kv_enter(&w, 0, "x", 3, &ops[0][0]);
  kv_enter(&w, 0, "y", 5, &ops[1][0]);
  kv_settle(&w);
  kv_enter(&w, 0, "x", 3, &twice);
  kv_enter(&w, 2, "x", 7, &other); /* another group */
  kv_enter(&w, 2, "z", 3, &alien); /* it is none of it */
  kv_settle(&w);
  assert_true(twice.done && other.done && alien.done);
  assert_string_equal(twice.op.err.id, "W7115");
  assert_string_equal(other.op.err.id, "W7115");
  assert_string_equal(alien.op.err.id, "W7115");
  kv_enter(&w, 2, "y", 5, &ops[1][1]);
  kv_settle(&w);
  assert_int_equal(done_ok(ops[1], 2), 2);
  assert_false(ops[0][0].done);
  kv_enter(&w, 1, "x", 3, &ops[0][1]);
  kv_settle(&w);
  assert_int_equal(done_ok(ops[0], 2), 2);
  kv_close(&w);
}

static void a_lost_member_breaks_its_barriers(void **state) {
  (void)state;
  kv_world w;
  kv_op a, b, again, mine;
  kv_open(&w, 1, 3, 3);
  kv_settle(&w); /* all have joined */
  kv_enter(&w, 0, "x", 7, &a);
  kv_enter(&w, 1, "x", 7, &b);
  kv_settle(&w);
  kv_kill_member(&w, 2);
  kv_pass_time(&w, 500); /* it may come back */
  kv_settle(&w);
  assert_false(a.done);
  kv_cut(&w, 1, 0); /* the answer is lost, and told again */
  kv_pass_time(&w, 500);
  kv_settle(&w);
  assert_true(a.done && b.done);
  assert_string_equal(a.op.err.id, "W7115");
  assert_non_null(strstr(a.op.err.message, "worker:2 is lost"));
  assert_non_null(strstr(b.op.err.message, "worker:2 is lost"));
  kv_enter(&w, 0, "x", 7, &again);
  kv_settle(&w);
  assert_true(again.done && again.op.status != WEIR_OK);
  kv_restart_member(&w, 2); /* back: the next one passes */
  kv_settle(&w);
  kv_enter(&w, 0, "x", 7, &a);
  kv_enter(&w, 1, "x", 7, &b);
  kv_enter(&w, 2, "x", 7, &mine);
  kv_settle(&w);
  assert_true(a.op.status == WEIR_OK && b.op.status == WEIR_OK &&
              mine.op.status == WEIR_OK && mine.done);
  kv_close(&w);
}

/* What a process entered is void for the next one in its place. */
static void a_new_process_enters_anew(void **state) {
  (void)state;
  kv_world w;
  kv_op a, old, new;
  kv_open(&w, 1, 2, 3);
  kv_enter(&w, 1, "x", 3, &old);
  kv_settle(&w);
  kv_restart_member(&w, 1);
  kv_settle(&w);
  kv_enter(&w, 0, "x", 3, &a);
  kv_settle(&w);
  assert_false(a.done);
  kv_enter(&w, 1, "x", 3, &new);
  kv_settle(&w);
  assert_true(a.done && new.done &&a.op.status == WEIR_OK);
  kv_close(&w);
}

/* ---- Processes that die */

/* A member's successor begins at 1 again, and pushes of the older one that had
 * come are applied before it joins. */
static void a_new_process_has_marks_of_its_own(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 50; seed++) {
    kv_world w;
    kv_op ops[40];
    uint32_t lost = 0;
    kv_open(&w, 1, 2, seed);
    for (int i = 0; i < 20; i++) kv_push(&w, 0, 0, 'a', 0, 1, &ops[i]);
    for (int turns = 0; turns < 30; turns++) (void)kv_turn(&w);
    kv_restart_member(&w, 0);
    for (int i = 0; i < 20; i++) {
      assert_true(ops[i].done);
      lost += ops[i].op.status != WEIR_OK;
    }
    for (int i = 20; i < 40; i++) kv_push(&w, 0, 0, 'a', 0, 1, &ops[i]);
    kv_settle(&w);
    assert_int_equal(done_ok(ops + 20, 20), 20);
    assert_true(w.applied >= 40 - lost && w.applied <= 40);
    assert_int_equal(w.given_up, 0);
    kv_close(&w);
  }
}

static void a_new_server_is_told_apart(void **state) {
  (void)state;
  kv_world w;
  kv_op before, after, other, of_new;
  kv_open(&w, 2, 2, 3);
  kv_push(&w, 0, 0, 'a', 0, 1, &before);
  kv_settle(&w);
  kv_restart_server(&w, 0);
  kv_push(&w, 0, 0, 'a', 0, 1, &after);
  kv_push(&w, 0, 1, 'a', 0, 1, &other);
  kv_settle(&w);
  assert_int_equal(before.op.status, WEIR_OK);
  assert_true(after.done);
  assert_string_equal(after.op.err.id, "W7114");
  assert_non_null(strstr(after.op.err.message, "ps:0"));
  assert_int_equal(other.op.status, WEIR_OK);
  kv_push(&w, 0, 0, 'a', 0, 1, &after); /* those to come too */
  assert_string_equal(after.op.err.id, "W7114");
  kv_restart_member(&w, 0); /* a process that never knew the older one */
  kv_push(&w, 0, 0, 'a', 0, 1, &of_new);
  kv_settle(&w);
  assert_int_equal(of_new.op.status, WEIR_OK);
  assert_int_equal(w.sums[0][0], 1);
  kv_close(&w);
}

/* ---- Bad input, lack of memory */

static void strange_messages_end_the_link(void **state) {
  (void)state;
  kv_world w;
  weir_kv_message m = {.kind = WEIR_KV_PUSH, .incarnation = 1, .seq = 1};
  kv_open(&w, 1, 2, 3);
  weir_kv_keeper_up(w.keepers[0], 0);
  weir_kv_keeper_message(w.keepers[0], 0, &m); /* nobody has joined */
  assert_int_equal(w.given_up, 1);
  m.kind = WEIR_KV_JOIN;
  weir_kv_keeper_message(w.keepers[0], 0, &m);
  m.kind = WEIR_KV_PUSH;
  m.seq = 2; /* 1 is missing */
  weir_kv_keeper_message(w.keepers[0], 0, &m);
  m.kind = WEIR_KV_DONE;
  weir_kv_keeper_message(w.keepers[0], 0, &m);
  m.kind = WEIR_KV_JOIN;
  weir_kv_keeper_message(w.keepers[0], 0, &m);
  assert_int_equal(w.given_up, 4);
  weir_kv_client_up(w.clients[0], 0);
  m = (weir_kv_message){.kind = WEIR_KV_JOINED, .seq = 3, .life = 1};
  weir_kv_client_message(w.clients[0], 0, &m); /* a mark above all numbers */
  m = (weir_kv_message){.kind = WEIR_KV_DONE};
  weir_kv_client_message(w.clients[0], 0, &m);
  assert_int_equal(w.given_up, 6);
  kv_close(&w);
}

/* Every byte of a message changed, and every cut of it. */
static void broken_notes_are_refused(void **state) {
  (void)state;
  weir_strbuf note;
  weir_kv_message m = {.kind = WEIR_KV_ENTER, .rank = 2, .dims = {3, 4}}, got;
  weir_error err = WEIR_ERROR_INIT;
  strcpy(m.name, "name");
  strcpy(m.text, "text");
  weir_strbuf_init(&note, weir_allocator_system());
  weir_kv_encode(&m, &note);
  assert_ok(weir_kv_decode(weir_strbuf_view(&note), "x", &got, &err), &err);
  assert_memory_equal(&m, &got, sizeof m);
  for (size_t n = 0; n < note.size; n++)
    assert_error(weir_kv_decode((weir_sv){note.data, n}, "x", &got, &err), &err,
                 "W7011");
  for (size_t i = 0; i < note.size; i++) {
    note.data[i] = (char)~note.data[i]; /* no harm, whatever it says */
    (void)weir_kv_decode(weir_strbuf_view(&note), "x", &got, &err);
    note.data[i] = (char)~note.data[i];
  }
  weir_strbuf_release(&note);
}

/* Without memory for a job or a round, links end or entries fail, and nothing
 * is lost or counted twice. */
static void lack_of_memory_changes_nothing(void **state) {
  (void)state;
  for (uint64_t k = 1; k < 60; k++) {
    kv_world w;
    kv_op ops[20], a, b;
    kv_open(&w, 1, 2, k);
    w.memory.fail_at = w.memory.calls + k;
    for (int i = 0; i < 20; i++) kv_push(&w, 0, 0, 'a', 0, 1, &ops[i]);
    kv_enter(&w, 0, "x", 3, &a);
    kv_settle(&w);
    if (!a.done) {
      kv_enter(&w, 1, "x", 3, &b);
      kv_settle(&w);
    }
    assert_true(a.done);
    assert_int_equal(done_ok(ops, 20), 20);
    assert_int_equal(w.applied, 20);
    kv_close(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pushes_under_cuts_count_once),
      cmocka_unit_test(refusals_survive_cuts),
      cmocka_unit_test(pulls_see_own_pushes),
      cmocka_unit_test(high_priority_overtakes),
      cmocka_unit_test(barriers_count_members),
      cmocka_unit_test(groups_and_names_stand_apart),
      cmocka_unit_test(a_lost_member_breaks_its_barriers),
      cmocka_unit_test(a_new_process_enters_anew),
      cmocka_unit_test(a_new_process_has_marks_of_its_own),
      cmocka_unit_test(a_new_server_is_told_apart),
      cmocka_unit_test(strange_messages_end_the_link),
      cmocka_unit_test(broken_notes_are_refused),
      cmocka_unit_test(lack_of_memory_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
