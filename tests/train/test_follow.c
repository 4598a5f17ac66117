/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/follow.h"

#include "runtime/base/bytes/crc32c.h"
#include "runtime/train/ended.h"
#include "runtime/train/loop/loop_eval.h"
#include "tests/train/loop_check.h"

/* Evaluators: each checkpoint of another loop, until that one's training is
 * over. What the other does happens in callbacks, so nothing depends on time.
 */

#define WATCHED                                       \
  "  checkpoint: {every: 2, keep: 3, async: false}\n" \
  "  eval: {data: test, every: 1 epoch, metrics: [acc, loss]}\n"

static const char kText[] = LOOP_ADAM WATCHED;

static const char *dir_of(const char *folder) {
  static char dir[128];
  snprintf(dir, sizeof dir, "%s/%s", loop_folder, folder);
  return dir;
}

/* Trains in |folder|, going on, to |steps|, or by the text's rules (0); a stop
 * comes at once with |stop|. */
static weir_train_end train(const char *text, const char *folder,
                            uint64_t steps, bool stop) {
  loop_world w;
  weir_train_end end;
  weir_loop_options o = {
      .seed = 5, .steps = steps, .checkpoint = dir_of(folder)};
  assert_ok(loop_open(&w, text, 1, o), &w.err);
  if (stop) weir_loop_stop(w.loop);
  assert_ok(weir_loop_run(w.loop, &end, &w.err), &w.err);
  loop_close(&w);
  return end;
}

/* An evaluator, and what happens when it waits. */
typedef struct watch {
  loop_world w;
  weir_train_followed f;
  int waits;
  uint64_t evals, skips, skipped, at; /* |at|: step of the last evaluation */
  double loss;
  char why[128];
  void (*on_wait)(struct watch *watch);
  void (*on_eval)(struct watch *watch);
} watch;

static void waiting(void *self, uint64_t step, const char *why) {
  watch *v = self;
  assert_int_equal(step, v->at);
  v->waits++;
  snprintf(v->why, sizeof v->why, "%s", why);
  if (v->on_wait == NULL) fail_msg("it waits at %d: %s", (int)step, why);
  v->on_wait(v);
}

static void skipped(void *self, uint64_t count, uint64_t step) {
  watch *v = self;
  assert_true(step > v->at);
  v->skips++;
  v->skipped = count;
}

static void evaluated(void *self, const weir_train_report *r) {
  watch *v = self;
  v->evals++;
  v->at = r->step;
  assert_string_equal(r->values[1].name, "loss");
  v->loss = r->values[1].value;
  if (v->on_eval != NULL) v->on_eval(v);
}

static void warned(void *self, const weir_error *w) {
  loop_on_warning(&((watch *)self)->w.seen, w);
}

/* Opens it on |folder|; NULL: none. */
static weir_status watch_open(watch *v, const char *text, const char *folder,
                              uint64_t steps) {
  weir_loop_options o = {.seed = 5,
                         .steps = steps,
                         .eval_only = true,
                         .follow = true,
                         .checkpoint = folder != NULL ? dir_of(folder) : ""};
  weir_train_callbacks calls = {.struct_size = sizeof calls,
                                .self = v,
                                .eval = evaluated,
                                .warning = warned,
                                .skipped = skipped,
                                .waiting = waiting};
  memset(v, 0, sizeof *v);
  weir_load_options load = {.registry = weir_builtin_registry(), .seed = 3};
  weir_pool_options pool = {.threads = 1, .spin_ns = -1};
  loop_world_init(&v->w);
  o.calls = &calls;
  assert_ok(
      weir_graph_load_text(&v->w.env, weir_sv_from(text), "follow.weir.yaml",
                           &load, &v->w.graph, &v->w.err),
      &v->w.err);
  assert_ok(weir_pool_create(&v->w.env, &pool, &v->w.pool, &v->w.err),
            &v->w.err);
  return weir_loop_create(&v->w.env, v->w.pool, v->w.graph, &o, &v->w.loop,
                          &v->w.err);
}

static void open_ok(watch *v, const char *text, const char *folder,
                    uint64_t steps) {
  assert_ok(watch_open(v, text, folder, steps), &v->w.err);
}

static void runs(watch *v) {
  assert_ok(weir_loop_follow(v->w.loop, NULL, &v->f, &v->w.err), &v->w.err);
  assert_int_equal(v->f.evaluations, v->evals);
  assert_int_equal(v->f.step, v->at);
}

/* The loss that `eval` finds in |folder|. */
static double loss_in(const char *folder) {
  loop_world w;
  weir_train_report r;
  weir_loop_options o = {
      .seed = 5, .eval_only = true, .checkpoint = dir_of(folder)};
  assert_ok(loop_open(&w, kText, 1, o), &w.err);
  assert_ok(weir_loop_eval(w.loop, NULL, &r, &w.err), &w.err);
  double loss = r.values[1].value;
  loop_close(&w);
  return loss;
}

static void train_seven(watch *v) {
  (void)v;
  train(kText, "f", 7, false);
}

static void train_nine(watch *v) {
  if (v->at == 7) train(kText, "f", 9, false);
}

static void stop_it(watch *v) {
  weir_loop_stop(v->w.loop);
}

/* ---- Ends */

static void ends_with_the_training(void **state) {
  (void)state;
  watch v;
  open_ok(&v, kText, "f", 7);
  v.on_wait = train_seven;
  runs(&v);
  assert_int_equal(v.waits, 1);
  assert_string_equal(v.why, "there is no checkpoint yet");
  assert_int_equal(v.f.end, WEIR_TRAIN_END_STEPS);
  assert_int_equal(v.at, 7);
  assert_int_equal(v.evals, 1);
  assert_int_equal(v.f.skipped, 3); /* 2, 4, 6 */
  assert_int_equal(v.skips, 1);
  assert_true(v.loss == loss_in("f"));
  loop_close(&v.w);
}

/* Each reason is in the last checkpoint, saved once. */
static void hears_every_reason(void **state) {
  (void)state;
  static const struct {
    const char *rules;
    weir_train_end end;
  } kEnds[] = {
      {"  steps: 8\n", WEIR_TRAIN_END_STEPS},
      {"  epochs: 2\n", WEIR_TRAIN_END_EPOCHS},
      {"  epochs: 99\n  stop: {target: loss <= 0.5}\n", WEIR_TRAIN_END_TARGET},
      {"  epochs: 99\n  lr: {'*': 0}\n"
       "  stop: {early: {metric: loss, patience: 1}}\n",
       WEIR_TRAIN_END_EARLY}};
  for (size_t i = 0; i < sizeof kEnds / sizeof *kEnds; i++) {
    watch v;
    char text[4096], folder[16];
    snprintf(text, sizeof text, "%s%s", kText, kEnds[i].rules);
    snprintf(folder, sizeof folder, "r%d", (int)i);
    assert_int_equal(train(text, folder, 0, false), kEnds[i].end);
    open_ok(&v, text, folder, 0);
    runs(&v);
    assert_int_equal(v.f.end, kEnds[i].end);
    assert_int_equal(v.evals, 1);
    assert_int_equal(v.f.skipped, 0); /* it came later */
    loop_close(&v.w);
  }
}

/* A training that goes on is followed further, whatever ended before. */
static void goes_on_where_more_is_asked(void **state) {
  (void)state;
  watch v;
  train(kText, "f", 7, false);
  open_ok(&v, kText, "f", 9);
  v.on_wait = train_nine;
  runs(&v);
  assert_string_equal(v.why,
                      "a training ended here before, and train: asks for more");
  assert_int_equal(v.f.end, WEIR_TRAIN_END_STEPS);
  assert_int_equal(v.at, 9);
  assert_int_equal(v.evals, 2);
  assert_int_equal(v.f.skipped, 1); /* 8 */
  loop_close(&v.w);
  /* Without numbers of its own it takes the training's word. */
  open_ok(&v, kText, "f", 0);
  runs(&v);
  assert_int_equal(v.evals, 1);
  loop_close(&v.w);
}

static void a_stopped_training_is_waited_for(void **state) {
  (void)state;
  watch v;
  assert_int_equal(train(kText, "f", 100, true), WEIR_TRAIN_END_STOPPED);
  open_ok(&v, kText, "f", 0);
  v.on_wait = train_seven;
  runs(&v);
  assert_string_equal(v.why, "the training was stopped here, and may go on");
  assert_int_equal(v.f.end, WEIR_TRAIN_END_STEPS);
  assert_int_equal(v.evals, 2);
  loop_close(&v.w);
}

static void stops_when_asked(void **state) {
  (void)state;
  watch v;
  open_ok(&v, kText, "none", 0);
  v.on_wait = stop_it;
  runs(&v);
  assert_int_equal(v.f.end, WEIR_TRAIN_END_STOPPED);
  assert_int_equal(v.evals, 0);
  loop_close(&v.w);
  /* While it evaluates, too: the evaluation is given up. */
  train(kText, "f", 7, false);
  open_ok(&v, kText, "f", 9);
  weir_loop_stop(v.w.loop);
  runs(&v);
  assert_int_equal(v.f.end, WEIR_TRAIN_END_STOPPED);
  loop_close(&v.w);
}

/* ---- Folders in a bad state */

/* Turns a bit near the end of the shard of |step|. */
static void damage(const char *folder, int step) {
  char path[256];
  snprintf(path, sizeof path, "%s/step-%08d-00000-of-00001.safetensors",
           dir_of(folder), step);
  FILE *f = fopen(path, "r+b");
  assert_non_null(f);
  assert_int_equal(fseek(f, -3, SEEK_END), 0);
  int c = fgetc(f);
  assert_int_equal(fseek(f, -3, SEEK_END), 0);
  assert_int_equal(fputc(c ^ 4, f), c ^ 4);
  fclose(f);
}

static void a_damaged_one_is_passed_over(void **state) {
  (void)state;
  watch v;
  train(kText, "f", 7, false);
  damage("f", 7);
  open_ok(&v, kText, "f", 0);
  runs(&v); /* the last word is in its manifest */
  assert_int_equal(v.at, 6);
  assert_int_equal(v.f.end, WEIR_TRAIN_END_STEPS);
  assert_int_equal(v.w.seen.warnings, 1);
  assert_non_null(strstr(v.w.seen.warning, "W4045"));
  loop_close(&v.w);
}

/* Takes what this version tells out of a manifest. */
static void make_old(const char *folder, int step) {
  char path[256], text[16384];
  snprintf(path, sizeof path, "%s/step-%08d.json", dir_of(folder), step);
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  text[fread(text, 1, sizeof text - 1, f)] = '\0';
  fclose(f);
  char *from = strstr(text, ",\"saves\":"),
       *end = strstr(text, "\"crc32c\": \"");
  assert_non_null(from);
  for (char *next; (next = strstr(end + 1, "\n \"crc32c\": \"")) != NULL;)
    end = next;
  char *to = strchr(from, '}');
  memmove(from, to, (size_t)(end - to) + 1);
  end = from + (end - to);
  snprintf(end + 1, 40, " \"crc32c\": \"%08x\"}\n",
           weir_crc32c(0, text, (size_t)(end + 1 - text)));
  f = fopen(path, "wb");
  assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
  fclose(f);
}

/* Checkpoints of a version that does not tell the end: steps and epochs do. */
static void older_versions(void **state) {
  (void)state;
  watch v;
  train(kText, "f", 8, false);
  make_old("f", 8);
  open_ok(&v, kText, "f", 8);
  runs(&v);
  assert_int_equal(v.f.end, WEIR_TRAIN_END_STEPS);
  loop_close(&v.w);
  char text[4096];
  snprintf(text, sizeof text, "%s  epochs: 2\n", kText);
  open_ok(&v, text, "f", 0);
  runs(&v);
  assert_int_equal(v.f.end, WEIR_TRAIN_END_EPOCHS);
  loop_close(&v.w);
  /* A training that goes on from it and has nothing to do says so now. */
  train(kText, "f", 8, false);
  open_ok(&v, kText, "f", 0);
  runs(&v);
  assert_int_equal(v.f.end, WEIR_TRAIN_END_STEPS);
  loop_close(&v.w);
}

static void refuses(void **state) {
  (void)state;
  watch v;
  open_ok(&v, LOOP_ADAM, "f", 0);
  assert_error(weir_loop_follow(v.w.loop, NULL, &v.f, &v.w.err), &v.w.err,
               "W5023");
  loop_close(&v.w);
  open_ok(&v, kText, "f", 0);
  assert_error(weir_loop_follow(v.w.loop, "other", &v.f, &v.w.err), &v.w.err,
               "W4023");
  loop_close(&v.w);
  assert_error(watch_open(&v, kText, NULL, 0), &v.w.err, "W4040");
  loop_close(&v.w);
  loop_world w;
  assert_ok(loop_open(&w, kText, 1, (weir_loop_options){.seed = 5}), &w.err);
  assert_error(weir_loop_follow(w.loop, NULL, &v.f, &w.err), &w.err, "W0004");
  loop_close(&w);
  /* Checkpoints of another graph. */
  char text[4096];
  train(kText, "f", 2, false);
  snprintf(text, sizeof text, "%s", kText);
  for (char *at = text; (at = strchr(at, '8')) != NULL; at++)
    if (at[-1] == '[' || at[1] == ']') *at = '7';
  open_ok(&v, text, "f", 0);
  assert_error(weir_loop_follow(v.w.loop, NULL, &v.f, &v.w.err), &v.w.err,
               "W5022");
  assert_int_equal(v.f.end, WEIR_TRAIN_END_FAILED);
  loop_close(&v.w);
}

/* ---- Memory */

static void memory_runs_out(void **state) {
  (void)state;
  bool done = false;
  train(kText, "f", 7, false);
  damage("f", 7);
  watch v;
  open_ok(&v, kText, "f", 0);
  for (uint64_t k = 1; !done; k++) {
    v.evals = v.at = 0;
    atomic_store(&v.w.memory.calls, 0);
    v.w.memory.fail_at = k;
    weir_status s = weir_loop_follow(v.w.loop, NULL, &v.f, &v.w.err);
    done = atomic_load(&v.w.memory.calls) < k;
    v.w.memory.fail_at = 0;
    if (done) assert_ok(s, &v.w.err);
    if (s != WEIR_OK) assert_string_equal(v.w.err.id, "W6001");
    assert_int_equal(
        v.f.end, s == WEIR_OK ? WEIR_TRAIN_END_STEPS : WEIR_TRAIN_END_FAILED);
  }
  loop_close(&v.w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      LOOP_TEST(ends_with_the_training),
      LOOP_TEST(hears_every_reason),
      LOOP_TEST(goes_on_where_more_is_asked),
      LOOP_TEST(a_stopped_training_is_waited_for),
      LOOP_TEST(stops_when_asked),
      LOOP_TEST(a_damaged_one_is_passed_over),
      LOOP_TEST(older_versions),
      LOOP_TEST(refuses),
      LOOP_TEST(memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
