/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>

#include "runtime/train/ps/server_part.h"
#include "tests/train/ps_check.h"
#include "tests/train/ps_hub.h"

/* Generations of parameter servers: what goes on from one has the bits of a job
 * that was never disturbed, with any number of servers; what a disk has lost or
 * changed is named. */

static char folder[64];

static int setup(void **state) {
  (void)state;
  strcpy(folder, "/tmp/weir-ps-XXXXXX");
  return mkdtemp(folder) == NULL;
}

static int teardown(void **state) {
  char command[128];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command) != 0;
}

/* Variables of more bytes than |cut| are cut. */
static void open_cut(hub *h, uint32_t servers, uint32_t aggregate,
                     uint32_t cut) {
  hub_open_cut(h, PS_NET, servers, aggregate, cut);
  h->dir = folder;
  hub_start_all(h);
}

static void open_on(hub *h, uint32_t servers, uint32_t aggregate) {
  open_cut(h, servers, aggregate, 0);
}

/* ---- Going on */

/* Three steps, a generation after the second, then other servers and pieces. */
static void sync_goes_on_cut(uint32_t before, uint32_t cut_before,
                             uint32_t after, uint32_t cut_after) {
  hub h;
  open_cut(&h, before, 2, cut_before);
  hub_begin(&h);
  hub_step_of(&h, 2);
  hub_step_of(&h, 2);
  assert_true(hub_save(&h));
  hub_step_of(&h, 2); /* is lost */
  hub_close(&h);
  open_cut(&h, after, 2, cut_after);
  for (int i = 0; i < 4; i++) hub_skip(&h);
  hub_begin(&h);
  assert_int_equal(h.generation, 1);
  hub_compare(&h, 2);
  hub_step_of(&h, 2);
  hub_compare(&h, 3);
  hub_close(&h);
}

static void sync_goes_on(uint32_t before, uint32_t after) {
  sync_goes_on_cut(before, 0, after, 0);
}

static void sync_goes_on_with_other_pieces(void **state) {
  (void)state;
  static const uint32_t kJobs[][4] = {
      {1, 0, 3, 16}, {3, 16, 1, 0}, {3, 16, 2, 16}, {2, 40, 4, 8}};
  for (size_t i = 0; i < sizeof kJobs / sizeof *kJobs; i++) {
    char command[128];
    sync_goes_on_cut(kJobs[i][0], kJobs[i][1], kJobs[i][2], kJobs[i][3]);
    snprintf(command, sizeof command, "rm -rf '%s'/*", folder);
    assert_int_equal(system(command), 0);
  }
}

static void sync_goes_on_with_as_many(void **state) {
  (void)state;
  sync_goes_on(1, 1);
}

static void sync_goes_on_with_two(void **state) {
  (void)state;
  sync_goes_on(2, 2);
}

static void sync_goes_on_with_more(void **state) {
  (void)state;
  sync_goes_on(1, 3);
}

static void sync_goes_on_with_fewer(void **state) {
  (void)state;
  sync_goes_on(3, 1);
}

/* Half a step is under way when the generation is taken: it is no part. */
static void half_a_step_is_not_saved(void **state) {
  (void)state;
  hub h;
  weir_exec_fetch out[PAIR_VALUES];
  open_on(&h, 2, 2);
  hub_begin(&h);
  hub_step_of(&h, 2);
  hub_compute(&h, out);
  weir_ps_message m = {
      .incarnation = 1 + (h.epoch << 24), .lease = 1, .step = 1, .version = 1};
  for (uint32_t k = 0; k < 2; k++) hub_push(&h, k, m, out);
  hub_forget(&h, out);
  assert_true(hub_save(&h));
  hub_close(&h);
  open_on(&h, 2, 2);
  hub_skip(&h);
  hub_skip(&h);
  hub_begin(&h);
  hub_compare(&h, 1);
  hub_close(&h);
}

static void record(hub *h, const weir_ps_op *op) {
  weir_ps_message m = {
      .kind = WEIR_PS_RECORD, .epoch = h->epoch, .seq = 1, .op = op};
  hub_tell(h, WEIR_PS_CHIEF, 0, 0, &m);
  hub_letter *letter = hub_expect(h, WEIR_PS_CHIEF, WEIR_PS_RECORDED);
  assert_true(letter->m.ok);
  hub_done(letter);
}

/* The marks tell which runs of a lease are done: the rest is dealt again. */
static void async_goes_on(uint32_t before, uint32_t after) {
  hub h;
  open_on(&h, before, 0);
  hub_begin(&h);
  weir_ps_op join = {.kind = WEIR_PS_OP_JOIN};
  weir_ps_op lease = {.kind = WEIR_PS_OP_LEASE, .range = {0, 5, 0, 1}};
  record(&h, &join);
  record(&h, &lease);
  uint64_t incarnation = h.epoch << 24; /* the first that is given out */
  weir_exec_fetch out[PAIR_VALUES];
  for (uint64_t run = 0; run < 3; run++) {
    weir_ps_message m = {.incarnation = incarnation,
                         .seq = run + 1,
                         .lease = 1,
                         .run = run,
                         .step = run,
                         .version = run,
                         .lr_version = run};
    hub_compute(&h, out);
    for (uint32_t k = 0; k < before; k++) {
      hub_push(&h, k, m, out);
      hub_wait(&h, WEIR_PS_WORKER, WEIR_PS_PUSHED);
    }
    hub_forget(&h, out);
  }
  assert_true(hub_save(&h));
  hub_close(&h);
  open_on(&h, after, 0);
  for (int i = 0; i < 3; i++) hub_skip(&h);
  hub_claim(&h, 5);
  for (uint32_t k = 0; k < after; k++) {
    hub_letter *letter = hub_restore(&h, k);
    assert_true(letter->m.ok);
    assert_int_equal(letter->m.version, 3);
    if (k == 0) {
      const weir_ps_ledger *l = letter->ledger;
      assert_non_null(l);
      assert_int_equal(l->cursor, 5);
      assert_int_equal(l->lease_count, 0);
      assert_int_equal(l->pool_count, 1);
      assert_int_equal(l->pool[0].first, 3);
      assert_int_equal(l->pool[0].end, 5);
      assert_true(l->next_incarnation > incarnation);
    }
    hub_done(letter);
  }
  hub_compare(&h, 3);
  hub_run(&h, 1, 1);
  hub_compare(&h, 4);
  hub_close(&h);
}

static void async_goes_on_with_as_many(void **state) {
  (void)state;
  async_goes_on(2, 2);
}

static void async_goes_on_with_more(void **state) {
  (void)state;
  async_goes_on(1, 2);
}

static void async_goes_on_with_fewer(void **state) {
  (void)state;
  async_goes_on(2, 1);
}

/* A server that is lost alone: all go back. */
static void one_server_comes_back(void **state) {
  (void)state;
  hub h;
  open_on(&h, 2, 1);
  hub_begin(&h);
  hub_step_of(&h, 1);
  assert_true(hub_save(&h));
  hub_step_of(&h, 1);
  hub_kill(&h, 1);
  hub_start(&h, 1);
  hub_begin(&h);
  for (uint32_t k = 0; k < 2; k++) {
    hub_letter *letter = hub_fetch(&h, k);
    assert_int_equal(letter->m.version, 1);
    hub_done(letter);
  }
  hub_close(&h);
}

/* ---- What is kept */

static void epochs_and_seals_outlive_a_process(void **state) {
  (void)state;
  hub h;
  open_on(&h, 1, 1);
  hub_begin(&h);
  hub_claim(&h, 99);
  hub_claim(&h, 100);
  uint64_t epoch = h.epoch;
  hub_begin(&h);
  for (int i = 0; i < 3; i++) {
    hub_step_of(&h, 1);
    assert_true(hub_save(&h));
  }
  hub_kill(&h, 0);
  hub_start(&h, 0);
  hub_claim(&h, 101); /* larger than all before it: hub_claim looks */
  assert_true(h.epoch > epoch + 1);
  assert_int_equal(h.generation, 3);
  hub_close(&h);
}

static bool is_saved(uint64_t generation, uint32_t server) {
  char path[160];
  struct stat st;
  snprintf(path, sizeof path, "%s/server-%05u/step-%08d.json", folder, server,
           (int)generation);
  return stat(path, &st) == 0;
}

/* The last two stay; one that was not sealed goes with the next. */
static void old_generations_go(void **state) {
  (void)state;
  hub h;
  open_on(&h, 2, 1);
  hub_begin(&h);
  for (int i = 0; i < 5; i++) {
    hub_step_of(&h, 1);
    assert_true(hub_save(&h));
  }
  hub_close(&h);
  for (uint64_t g = 1; g <= 5; g++) {
    assert_int_equal(is_saved(g, 0), g >= 4);
    assert_int_equal(is_saved(g, 1), g >= 3); /* goes with its next save */
  }
}

/* ---- Damage */

static void change(const char *name, long at, bool cut) {
  char path[200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "r+b");
  assert_non_null(f);
  if (at < 0) {
    fseek(f, 0, SEEK_END);
    at += ftell(f);
  }
  if (cut) {
    fclose(f);
    assert_int_equal(truncate(path, at), 0);
    return;
  }
  fseek(f, at, SEEK_SET);
  int c = fgetc(f);
  fseek(f, at, SEEK_SET);
  fputc(c ^ 0x40, f);
  fclose(f);
}

/* Each kind of damage, and the words for it. */
static void damage_is_named(void **state) {
  (void)state;
  static const struct {
    const char *file;
    long at;
    bool cut;
    const char *id, *says;
  } kDamage[] = {{"server-00001/step-00000001-00000-of-00001.safetensors", -5,
                  false, "W4045", "server-00001"},
                 {"server-00001/step-00000001-00000-of-00001.safetensors", 12,
                  false, "W4045", "server-00001"},
                 {"server-00001/step-00000001-00000-of-00001.safetensors", -9,
                  true, "W4045", "server-00001"},
                 {"server-00001/step-00000001.json", 60, false, "W4041",
                  "server-00001/step-00000001.json"},
                 {"server-00001/step-00000001.json", -30, true, "W4041",
                  "server-00001/step-00000001.json"}};
  for (size_t i = 0; i < sizeof kDamage / sizeof *kDamage; i++) {
    hub h;
    open_on(&h, 2, 1);
    hub_begin(&h);
    hub_step_of(&h, 1);
    assert_true(hub_save(&h));
    change(kDamage[i].file, kDamage[i].at, kDamage[i].cut);
    hub_claim(&h, 3 + h.epoch);
    h.log_used = 0;
    hub_letter *letter = hub_restore(&h, 1);
    assert_false(letter->m.ok);
    hub_done(letter);
    if (strstr(h.log, kDamage[i].id) == NULL ||
        strstr(h.log, kDamage[i].says) == NULL)
      fail_msg("%d: no %s: %s", (int)i, kDamage[i].id, h.log);
    letter = hub_fetch(&h, 1); /* nothing is told of half a state */
    assert_false(letter->m.newer);
    hub_done(letter);
    hub_drop_letters(&h, 0);
    hub_close(&h);
    teardown(NULL);
    assert_int_equal(mkdir(folder, 0700), 0);
  }
}

/* A job that forgot an epoch could have two chiefs: it does not begin. */
static void damaged_notes_are_named(void **state) {
  (void)state;
  static const char *const kFiles[] = {"sealed", "epoch"};
  for (int i = 0; i < 4; i++) {
    hub h;
    open_on(&h, 1, 1);
    hub_begin(&h);
    assert_true(hub_save(&h));
    hub_kill(&h, 0);
    change(kFiles[i / 2], 16, i % 2 == 1);
    assert_error(hub_create(&h, 0), &h.err, "W7091");
    assert_non_null(strstr(h.err.message, kFiles[i / 2]));
    hub_close(&h);
    teardown(NULL);
    assert_int_equal(mkdir(folder, 0700), 0);
  }
}

/* Parts of one number that were saved in different lives are no generation. */
static void parts_of_different_lives(void **state) {
  (void)state;
  char command[400];
  hub h;
  open_on(&h, 2, 1);
  hub_begin(&h);
  hub_step_of(&h, 1);
  assert_true(hub_save(&h));
  hub_close(&h);
  snprintf(command, sizeof command,
           "cd %s && mv server-00001 other && rm sealed && rm server-00000/*",
           folder);
  assert_int_equal(system(command), 0);
  open_on(&h, 2, 1);
  hub_begin(&h);
  assert_int_equal(h.generation, 0);
  hub_step_of(&h, 1);
  assert_true(hub_save(&h));
  hub_close(&h);
  snprintf(command, sizeof command,
           "cd %s && rm -r server-00001 && mv other server-00001", folder);
  assert_int_equal(system(command), 0);
  open_on(&h, 2, 1);
  hub_claim(&h, 9);
  assert_int_equal(h.generation, 1);
  h.log_used = 0;
  hub_letter *letter = hub_restore(&h, 0);
  assert_false(letter->m.ok);
  hub_done(letter);
  assert_non_null(strstr(h.log, "W7091"));
  hub_close(&h);
}

static void two_servers_of_one_name(void **state) {
  (void)state;
  hub h;
  open_on(&h, 2, 1);
  hub_port first = h.ports[1];
  assert_error(hub_create(&h, 1), &h.err, "W4043");
  h.ports[1] = first;
  hub_close(&h);
}

/* ---- A disk that is full */

static weir_fs_folders folders;
static atomic_bool full;

static weir_status append(void *self, void *file, weir_bytes bytes,
                          weir_error *err) {
  if (atomic_load(&full))
    return weir_fail(err, WEIR_W6005, NULL, "the disk is full");
  return weir_system_folders.append(self, file, bytes, err);
}

/* Costs the generation; training goes on, and so does saving, later. */
static void a_full_disk_costs_a_generation(void **state) {
  (void)state;
  hub h;
  hub_open(&h, PS_NET, 2, 2);
  folders = weir_system_folders;
  folders.append = append;
  h.fs.folders = &folders;
  h.dir = folder;
  atomic_store(&full, false);
  hub_start_all(&h);
  hub_begin(&h);
  hub_step_of(&h, 2);
  assert_true(hub_save(&h));
  atomic_store(&full, true);
  hub_step_of(&h, 2);
  assert_false(hub_save(&h));
  hub_step_of(&h, 2);
  hub_compare(&h, 3);
  assert_non_null(strstr(h.log, "W6005"));
  atomic_store(&full, false);
  while (!hub_save(&h)) { /* the others may still be at the one before */
  }
  hub_step_of(&h, 2); /* is lost */
  uint64_t last = h.generation;
  hub_close(&h);
  open_on(&h, 2, 2);
  for (int i = 0; i < 6; i++) hub_skip(&h);
  hub_begin(&h);
  assert_int_equal(h.generation, last);
  hub_compare(&h, 3);
  hub_close(&h);
}

static atomic_int refusals;

static weir_status refuse_to_write(void *self, const char *path,
                                   weir_bytes content, weir_error *err) {
  if (atomic_load(&refusals) == 0)
    return weir_system_fs.write(self, path, content, err);
  atomic_fetch_sub(&refusals, 1);
  return weir_fail(err, WEIR_W6005, NULL, "the disk is full");
}

/* A chief waits until there is room for its epoch; a generation that cannot be
 * sealed is given up. */
static void a_full_disk_grants_nothing(void **state) {
  (void)state;
  hub h;
  hub_open(&h, PS_NET, 1, 1);
  h.fs.write = refuse_to_write;
  h.dir = folder;
  hub_start_all(&h);
  atomic_store(&refusals, 2);
  hub_begin(&h);
  assert_int_equal(atomic_load(&refusals), 0);
  assert_non_null(strstr(h.log, "W6005"));
  hub_step_of(&h, 1);
  atomic_store(&refusals, 1);
  assert_false(hub_save(&h));
  assert_int_equal(h.generation, 0);
  assert_true(hub_save(&h));
  hub_compare(&h, 1);
  atomic_store(&refusals, 1000000); /* a server ends while it waits */
  weir_ps_message m = {.kind = WEIR_PS_CLAIM, .incarnation = 1};
  hub_tell(&h, WEIR_PS_CHIEF, 0, 0, &m);
  while (atomic_load(&refusals) > 999998) hub_step(&h);
  hub_close(&h);
}

/* ---- Memory */

/* Wherever memory ends in a save, the generation is given up and the next one
 * is complete; wherever it ends in a restore, the next one has all values. */
static void saves_out_of_memory(void **state) {
  (void)state;
  hub h;
  open_on(&h, 1, 1);
  weir_counted_allocator *memory = &h.pair.world.memory;
  hub_begin(&h);
  hub_step_of(&h, 1);
  assert_true(hub_save(&h));
  int lost = 0;
  for (uint64_t k = 1, done = 0; !done; k++) {
    memory->fail_at = atomic_load(&memory->calls) + k;
    bool ok = hub_save(&h);
    done = atomic_load(&memory->calls) < memory->fail_at;
    memory->fail_at = 0;
    lost += !ok;
    if (done) assert_true(ok);
    if (!ok) assert_true(hub_save(&h));
    assert_int_equal(h.ports[0].over, 0);
  }
  assert_true(lost > 10);
  hub_begin(&h);
  hub_compare(&h, 1);
  hub_close(&h);
}

static void restores_out_of_memory(void **state) {
  (void)state;
  hub h;
  open_on(&h, 2, 1);
  weir_counted_allocator *memory = &h.pair.world.memory;
  hub_begin(&h);
  hub_step_of(&h, 1);
  assert_true(hub_save(&h));
  int lost = 0;
  for (uint64_t k = 1, done = 0; !done; k += 5) {
    hub_claim(&h, 500 + k);
    memory->fail_at = atomic_load(&memory->calls) + k;
    hub_letter *letter = hub_restore(&h, k / 5 % 2);
    bool ok = letter->m.ok;
    hub_done(letter);
    done = k / 5 % 2 == 0 && atomic_load(&memory->calls) < memory->fail_at;
    memory->fail_at = 0;
    lost += !ok;
    if (done) assert_true(ok);
  }
  assert_true(lost > 10);
  hub_begin(&h);
  hub_compare(&h, 1);
  hub_close(&h);
}

/* ---- The text of a part */

static void refuse_other_texts(weir_counted_allocator *memory,
                               weir_strbuf *text) {
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_part back;
  weir_sv all = weir_strbuf_view(text);
  /* Cut anywhere, or a digit made a letter: it is refused, and nothing leaks.
   */
  int64_t live = atomic_load(&memory->live_blocks);
  for (size_t i = 0; i < all.size; i++) {
    weir_sv cut = {all.data, i};
    if (i + 1 < all.size) { /* but for the end of the line */
      assert_true(weir_ps_part_read(&memory->base, cut, "f", &back, &err) !=
                  WEIR_OK);
      weir_ps_part_release(&back);
    }
    char *c = text->data + i;
    if (*c < '0' || *c > '9') continue;
    char was = *c;
    *c = 'x';
    assert_true(weir_ps_part_read(&memory->base, all, "f", &back, &err) !=
                WEIR_OK);
    weir_ps_part_release(&back);
    *c = was;
  }
  assert_int_equal(atomic_load(&memory->live_blocks), live);
  for (uint64_t k = 1; atomic_load(&memory->live_blocks) == live; k++) {
    memory->fail_at = atomic_load(&memory->calls) + k;
    weir_status s = weir_ps_part_read(&memory->base, all, "f", &back, &err);
    memory->fail_at = 0;
    if (s == WEIR_OK) break;
    assert_string_equal(err.id, "W6001");
    weir_ps_part_release(&back);
  }
  weir_ps_part_release(&back);
}

static void parts_are_read_back(void **state) {
  (void)state;
  weir_counted_allocator memory;
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_ledger *ledger = NULL;
  weir_ps_part back;
  weir_strbuf text;
  weir_counted_allocator_init(&memory, NULL);
  weir_ps_config config = {
      .mode = WEIR_PS_ASYNC, .servers = 2, .workers = 3, .aggregate = 1};
  weir_ps_mark marks[3] = {{1, 2, 3, 4}, {0}, {UINT64_MAX, 1, 2, 3}};
  assert_ok(
      weir_ps_ledger_create(&memory.base, &config, WEIR_PS_NONE, &ledger, &err),
      &err);
  weir_ps_op join = {.kind = WEIR_PS_OP_JOIN, .worker = 2};
  weir_ps_op lease = {
      .kind = WEIR_PS_OP_LEASE, .worker = 2, .range = {0, 7, 0, 1}};
  assert_ok(weir_ps_ledger_apply(ledger, &join, &err), &err);
  assert_ok(weir_ps_ledger_apply(ledger, &lease, &err), &err);
  weir_ps_state made = {8, 9, marks, ledger};
  weir_ps_part part = {.life = 6, .servers = 2, .workers = 3};
  weir_strbuf_init(&text, &memory.base);
  assert_ok(weir_ps_part_write(&part, &made, &text, &err), &err);
  weir_sv all = weir_strbuf_view(&text);
  assert_ok(weir_ps_part_read(&memory.base, all, "f", &back, &err), &err);
  assert_int_equal(back.life, 6);
  assert_int_equal(back.state.generation, 8);
  assert_int_equal(back.state.version, 9);
  assert_memory_equal(back.marks, marks, sizeof marks);
  assert_true(back.ledger->limit == WEIR_PS_NONE);
  assert_int_equal(back.ledger->cursor, 7);
  assert_int_equal(back.ledger->lease_count, 1);
  assert_int_equal(back.ledger->leases[0].range.end, 7);
  assert_int_equal(back.ledger->members[2].state, WEIR_PS_MEMBER);
  weir_ps_part_release(&back);
  refuse_other_texts(&memory, &text);
  weir_ps_ledger_release(ledger);
  weir_strbuf_release(&text);
  assert_int_equal(atomic_load(&memory.live_blocks), 0);
}

#define PS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      PS_TEST(sync_goes_on_with_as_many),
      PS_TEST(sync_goes_on_with_two),
      PS_TEST(sync_goes_on_with_more),
      PS_TEST(sync_goes_on_with_fewer),
      PS_TEST(sync_goes_on_with_other_pieces),
      PS_TEST(half_a_step_is_not_saved),
      PS_TEST(async_goes_on_with_as_many),
      PS_TEST(async_goes_on_with_more),
      PS_TEST(async_goes_on_with_fewer),
      PS_TEST(one_server_comes_back),
      PS_TEST(epochs_and_seals_outlive_a_process),
      PS_TEST(old_generations_go),
      PS_TEST(damage_is_named),
      PS_TEST(damaged_notes_are_named),
      PS_TEST(parts_of_different_lives),
      PS_TEST(two_servers_of_one_name),
      PS_TEST(a_full_disk_costs_a_generation),
      PS_TEST(a_full_disk_grants_nothing),
      PS_TEST(saves_out_of_memory),
      PS_TEST(restores_out_of_memory),
      PS_TEST(parts_are_read_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
