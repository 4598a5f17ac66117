/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/split/split_pin.h"
#include "tests/graph/split_pair.h"

/* Worker and update graphs against the training graph that they were cut from.
 */

static const char *graphs; /* the folder */

/* ---- Small graphs */

static const char kNet[] =
    "weir: 1\n"
    "import: {nn: std/nn}\n"
    "inputs: {x: 'f32[6, 2, 8, 8]', label: 'i64[6]'}\n"
    "nodes:\n"
    "  c: nn.batch_norm(nn.conv(x, filters=4, kernel=3, pad=1), act=relu)\n"
    "  p: flatten(avg_pool(c, kernel=2, stride=2))\n"
    "  h: dropout(nn.dense(p, units=9, act=tanh), keep=0.75)\n"
    "  y: nn.dense(h, units=3)\n"
    "  loss: mean(sparse_softmax_xent(y, label))\n"
    "outputs: [y]\n"
    "train:\n"
    "  minimize: loss\n";

/* |rest|: the section's other lines. */
static void check_net(const char *rest, weir_split_options split) {
  char text[2048];
  snprintf(text, sizeof text, "%s%s", kNet, rest);
  split_pair_options options = {.text = text, .split = split};
  pair_check(&options, 6);
}

static void test_optimizers(void **state) {
  (void)state;
  static const char *const kOptimizers[] = {
      "sgd(lr=0.1)",
      "momentum(lr=0.1, momentum=0.9, nesterov=true)",
      "adagrad(lr=0.1, initial=0.2)",
      "proximal_sgd(lr=0.1, l1=1e-3)",
      "proximal_adagrad(lr=0.1, l1=1e-3)",
      "rms_prop(lr=0.01, momentum=0.9, centered=true)",
      "rms_prop(lr=0.01)",
      "adam(lr=0.01)",
      "adamw(lr=0.01, weight_decay=0.1)"};
  for (size_t i = 0; i < sizeof kOptimizers / sizeof *kOptimizers; i++) {
    char rest[128];
    snprintf(rest, sizeof rest, "  optimizer: %s\n", kOptimizers[i]);
    check_net(rest, (weir_split_options){.servers = 1 + (uint32_t)i % 3});
    check_net(rest, (weir_split_options){.servers = 2, .aggregate = 3});
  }
}

static const char *const kRules[] = {
    "  optimizer: adam(lr=0.01, l2=0.01)\n  l2_exclude: ['*/b']\n",
    "  optimizer: sgd(lr=0.5)\n  clip: {value: 0.01}\n",
    "  optimizer: momentum(lr=0.5)\n  clip: {norm: 0.05}\n",
    "  optimizer: adam(lr=0.5)\n  clip: {global_norm: 0.05}\n  ema: {decay: "
    "0.9}\n",
    "  optimizer: adam(lr=0.01)\n  schedule: [warmup(steps=3), "
    "cosine(steps=9)]\n  ema: {decay: 0.9}\n",
    "  optimizer: sgd()\n  schedule: step(every=2, factor=0.5)\n"
    "  lr: {base: 0.1, scale: {'y/*': 0.1}}\n",
    "  optimizer: adam(lr=0.01)\n  trainable: ['y/*']\n"};

/* Batches that weigh by examples: each server adds these up. */
static void test_average(void **state) {
  (void)state;
  for (uint32_t servers = 1; servers <= 4; servers++)
    for (size_t i = 0; i < sizeof kRules / sizeof *kRules; i++) {
      char rest[256];
      snprintf(rest, sizeof rest,
               "%s  average: examples\n  sync: {aggregate: 3}\n", kRules[i]);
      check_net(rest, (weir_split_options){.servers = servers, .aggregate = 3});
    }
}

static void test_rules(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof kRules / sizeof *kRules; i++) {
    check_net(kRules[i], (weir_split_options){.servers = 1});
    check_net(kRules[i], (weir_split_options){.servers = 3, .aggregate = 2});
    check_net(kRules[i],
              (weir_split_options){
                  .servers = 3, .clip_at_worker = true, .given_step = true});
    check_net(kRules[i], (weir_split_options){
                             .servers = 3, .aggregate = 2, .given_step = true});
    check_net(kRules[i], (weir_split_options){.servers = 2,
                                              .clip_at_worker = true,
                                              .given_step = true,
                                              .given_staleness = true});
  }
}

/* A counter, a state that the loss reads, an average that follows twice. */
static const char kStates[] =
    "weir: 1\n"
    "inputs: {x: 'f32[4, 5]'}\n"
    "nodes:\n"
    "  w: var([5, 3], init=uniform(-1, 1))\n"
    "  v: var([5, 3], init=uniform(-1, 1))\n"
    "  frozen: var([3], init=uniform(-1, 1))\n"
    "  h0: state([4, 3])\n"
    "  n: state([], dtype=i64)\n"
    "  copy: state([5, 3])\n"
    "  h: tanh(add(add(matmul(x, w), h0), frozen))\n"
    "  counted: assign_add(n, 1)\n"
    "  keep: assign(copy, w)\n"
    "  some: reduce_sum(mul(w, v))\n"
    "  noise: uniform(0, 1, [4, 3])\n"
    "  loss: add(mean(mul(square(h), noise)), some)\n"
    "update: {h0: h}\n"
    "outputs: [h, counted]\n"
    "train: {minimize: loss, optimizer: sgd(lr=0.1), trainable: [w, v]}\n";

static void test_states(void **state) {
  (void)state;
  for (uint32_t servers = 1; servers <= 4; servers++)
    for (uint32_t aggregate = 1; aggregate <= 3; aggregate += 2) {
      split_pair_options options = {
          .text = kStates,
          .split = {.servers = servers, .aggregate = aggregate}};
      pair_check(&options, 7);
    }
}

/* ---- The tables */

static void test_tables(void **state) {
  (void)state;
  split_pair p;
  split_pair_options options = {.text = kStates, .split = {.servers = 2}};
  pair_open(&p, &options);
  const weir_split *s = p.split;
  uint64_t bytes[2] = {0};
  static const struct {
    const char *name;
    uint64_t bytes;
    bool worker, push;
  } kVars[] = {{"w", 60, true, true},
               {"v", 60, true, true},
               {"frozen", 12, true, false},
               {"h0", 48, true, false},
               {"n", 8, true, false},
               {"copy", 60, true, false},
               {"train/global_step", 8, false, false}};
  assert_int_equal(s->var_count, 7);
  for (uint32_t i = 0; i < s->var_count; i++) {
    const weir_split_var *v = &s->vars[i];
    assert_true(weir_sv_is(v->name, kVars[i].name));
    assert_int_equal(v->bytes, kVars[i].bytes);
    assert_int_equal(v->worker != WEIR_NO_VALUE, kVars[i].worker);
    assert_int_equal(v->push != UINT32_MAX, kVars[i].push);
    if (v->server != WEIR_SPLIT_ALL) bytes[v->server] += v->bytes;
  }
  assert_int_equal(s->vars[6].server, WEIR_SPLIT_ALL);
  assert_int_equal(bytes[0], 128);
  assert_int_equal(bytes[1], 120);
  assert_int_equal(s->updates[0].bytes, 136);
  assert_int_equal(s->updates[1].bytes, 128);
  assert_true(weir_sv_is(s->pushes[s->vars[0].push].name, "train/w/grad"));
  assert_true(weir_sv_is(s->pushes[s->vars[1].push].name, "train/v/grad"));
  assert_int_equal(s->pushes[s->vars[0].push].bytes, 60);
  pair_close(&p);
}

/* Slots lie beside their variable, the load is even. */
static void test_deal(void **state) {
  (void)state;
  char text[2048];
  split_pair p;
  snprintf(text, sizeof text,
           "%s  optimizer: adam(lr=0.01)\n  ema: {decay: 0.9}\n", kNet);
  split_pair_options options = {.text = text, .split = {.servers = 3}};
  pair_open(&p, &options);
  const weir_split *s = p.split;
  uint64_t sum = 0, most = 0, largest = 0;
  for (uint32_t i = 0; i < s->var_count; i++) {
    const weir_split_var *v = &s->vars[i];
    uint64_t unit = v->bytes;
    for (uint32_t k = 0; k < s->var_count; k++) {
      if (s->vars[k].of != v->node) continue;
      assert_int_equal(s->vars[k].server, v->server);
      unit += s->vars[k].bytes;
    }
    if (unit > largest) largest = unit;
  }
  for (uint32_t k = 0; k < 3; k++) {
    sum += s->updates[k].bytes;
    if (s->updates[k].bytes > most) most = s->updates[k].bytes;
  }
  assert_true(most <= sum / 3 + largest);
  pair_close(&p);
}

/* ---- Refusals and memory */

static weir_status try_split(const weir_allocator *alloc, const char *text,
                             const weir_split_options *options,
                             weir_error *err) {
  weir_env env = {.alloc = alloc};
  weir_load_options load = {.registry = weir_builtin_registry()};
  weir_graph *graph = NULL;
  weir_train_spec *spec = NULL;
  weir_split *split = NULL;
  weir_status s =
      weir_graph_load_text(&env, weir_sv_from(text), "t", &load, &graph, err);
  if (s == WEIR_OK) s = weir_train_spec_read(graph, NULL, &spec, err);
  if (s == WEIR_OK) s = weir_graph_split(graph, spec, options, &split, err);
  bool reads[PAIR_VALUES];
  weir_graph *pinned = NULL;
  weir_train_graph *train = NULL;
  weir_split_devices devices = {WEIR_SV_LIT("worker"), 0, WEIR_SV_LIT("ps")};
  if (s == WEIR_OK) s = weir_split_reads(split, &split->loss, 1, reads, err);
  if (s == WEIR_OK) s = weir_graph_train(graph, spec, &train, err);
  if (s == WEIR_OK) s = weir_split_pin(split, train, &devices, &pinned, err);
  weir_graph_unref(pinned);
  weir_train_graph_release(train);
  weir_split_release(split);
  weir_train_spec_release(spec);
  weir_graph_unref(graph);
  return s;
}

/* ---- Options of a section */

static void test_options(void **state) {
  (void)state;
  static const struct {
    const char *section;
    uint32_t aggregate;
    bool worker; /* clips, and sends its step */
    double factor;
  } kWays[] = {{"mode: async", 1, true, 1},
               {"mode: 'sync(aggregate=4)', lr_scale: linear", 4, false, 4},
               {"sync: true, lr_scale: sqrt", 9, false, 3},
               {"bounded: 2", 1, true, 1},
               {"mode: 'async(staleness_lr=inverse)'", 1, true, 1},
               {"bounded: {staleness: 2, staleness_lr: inverse}", 1, true, 1},
               {"replicate: between_graph", 1, true, 1}};
  for (size_t i = 0; i < sizeof kWays / sizeof *kWays; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "weir: 1\nnodes:\n  w: var([2])\n  loss: mean(square(w))\n"
             "train: {minimize: loss, optimizer: sgd(lr=0.5), %s}\n",
             kWays[i].section);
    split_pair p;
    split_pair_options options = {.text = text, .split = {.servers = 1}};
    pair_open(&p, &options);
    weir_split_options o = weir_split_options_of(p.spec, 2, 9);
    assert_true(p.spec->shared.between);
    assert_int_equal(o.servers, 2);
    assert_int_equal(o.aggregate, kWays[i].aggregate);
    assert_int_equal(o.clip_at_worker, kWays[i].worker);
    assert_int_equal(o.given_step, kWays[i].worker);
    assert_int_equal(o.given_staleness,
                     strstr(kWays[i].section, "inverse") != NULL);
    assert_true(o.lr_factor == kWays[i].factor);
    pair_close(&p);
  }
}

/* The gradient of w is w: each update takes lr times the factor of it. */
static void test_lr_factor(void **state) {
  (void)state;
  split_pair p;
  split_pair_options options = {
      .text =
          "weir: 1\nnodes:\n  w: var([2], init=ones())\n"
          "  loss: mul(reduce_sum(square(w)), 0.5)\n"
          "train: {minimize: loss, optimizer: sgd(lr=0.125)}\n",
      .split = {.lr_factor = 2}};
  weir_error err = WEIR_ERROR_INIT;
  weir_exec_fetch out[8];
  weir_exec_feed feeds[8];
  weir_tensor *w = NULL;
  pair_open(&p, &options);
  pair_compute(&p, feeds, 0, out);
  pair_push(&p, 0, out);
  assert_ok(weir_exec_variable_get(p.servers[0], p.split->updates[0].vars[0],
                                   &w, &err),
            &err);
  assert_true(weir_tensor_get_f64(w, 1) == 0.75);
  weir_tensor_unref(w);
  for (uint32_t i = 0; i <= p.split->push_count; i++)
    weir_tensor_unref(out[i].tensor);
  pair_close(&p);
}

/* The gradient of w is 1: each update takes the rate itself, by its age. */
static void test_staleness(void **state) {
  (void)state;
  static const char *const kTypes[] = {"f32", "f64"};
  static const char *const kRates[] = {"", "lr: {scale: {w: 0.7}}, ",
                                       "schedule: 'step(every=1)', "};
  const double scales[] = {1, 0.7, 1};
  for (int i = 0; i < 6; i++) {
    char text[512];
    weir_error err = WEIR_ERROR_INIT;
    split_pair p;
    double want = 0;
    snprintf(text, sizeof text,
             "weir: 1\nnodes:\n  w: var([], init=zeros(), dtype=%s)\n"
             "  loss: mul(w, 1.0)\n"
             "train: {minimize: loss, %soptimizer: sgd(lr=0.3)}\n",
             kTypes[i / 3], kRates[i % 3]);
    split_pair_options options = {
        .text = text, .split = {.given_step = true, .given_staleness = true}};
    pair_open(&p, &options);
    for (p.staleness = 0; p.staleness < 5; p.staleness++) {
      double age = p.staleness > 1 ? (double)p.staleness : 1;
      double rate = i % 3 == 2 ? 0.3 * pow(0.1, (double)p.runs) : 0.3;
      weir_tensor *w = NULL;
      pair_batch(&p);
      assert_ok(weir_exec_variable_get(p.servers[0],
                                       p.split->updates[0].vars[0], &w, &err),
                &err);
      rate = rate / age * scales[i % 3];
      want = i < 3 ? (float)((float)want - (float)rate) : want - rate;
      if (weir_tensor_get_f64(w, 0) != want)
        fail_msg("%s: age %d: %.17g, not %.17g", text, (int)p.staleness,
                 weir_tensor_get_f64(w, 0), want);
      weir_tensor_unref(w);
    }
    pair_close(&p);
  }
}

/* Several blocks of the norm, some of which servers share. */
static const char kWide[] =
    "weir: 1\n"
    "inputs: {x: '%s[3, 300]'}\n"
    "nodes:\n"
    "  a: var([300, 5], init=uniform(-1, 1), dtype=%s)\n"
    "  w: var([5, 14000], init=uniform(-1, 1), dtype=%s)\n"
    "  e: var([0], init=zeros(), dtype=%s)\n"
    "  b: var([14000], init=uniform(-1, 1), dtype=%s)\n"
    "  y: add(matmul(matmul(x, a), w), b)\n"
    "  loss: add(mean(square(y)), reduce_sum(e))\n"
    "outputs: [y]\n"
    "train:\n  minimize: loss\n  optimizer: momentum(lr=0.5)\n"
    "  clip: {global_norm: 0.01}\n";

static void test_norms_over_servers(void **state) {
  (void)state;
  static const char *const kTypes[] = {"f32", "f64"};
  for (int t = 0; t < 2; t++)
    for (uint32_t servers = 2; servers <= 4; servers++)
      for (uint32_t n = 1; n <= 2; n++) {
        char text[2048];
        const char *y = kTypes[t];
        snprintf(text, sizeof text, kWide, y, y, y, y, y);
        split_pair p;
        split_pair_options options = {
            .text = text, .split = {.servers = servers, .aggregate = n}};
        pair_open(&p, &options);
        assert_true(p.split->sum_count > 3);
        for (int i = 0; i < 4; i++) pair_batch(&p);
        pair_close(&p);
      }
}

/* A step reads the variables that its loss depends on. */
static void test_reads(void **state) {
  (void)state;
  split_pair p;
  split_pair_options options = {.text = kStates, .split = {.servers = 2}};
  weir_error err = WEIR_ERROR_INIT;
  bool reads[PAIR_VALUES];
  pair_open(&p, &options);
  assert_ok(weir_split_reads(p.split, &p.split->loss, 1, reads, &err), &err);
  for (uint32_t i = 0; i < p.split->var_count; i++) {
    weir_sv name = p.split->vars[i].name;
    assert_int_equal(reads[i], weir_sv_is(name, "w") || weir_sv_is(name, "v") ||
                                   weir_sv_is(name, "frozen") ||
                                   weir_sv_is(name, "h0"));
  }
  pair_close(&p);
}

static void test_refusals(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  char text[2048];
  snprintf(text, sizeof text, "%s  optimizer: adam(lr=0.01)\n", kNet);
  weir_split_options clash = {.aggregate = 2, .clip_at_worker = true};
  assert_error(try_split(weir_allocator_system(), text, &clash, &err), &err,
               "W9001");
  weir_split_options many = {.servers = WEIR_SPLIT_SERVERS + 1};
  assert_error(try_split(weir_allocator_system(), text, &many, &err), &err,
               "W9001");
}

static void test_memory(void **state) {
  (void)state;
  weir_split_options options = {.servers = 2, .aggregate = 2};
  char text[2048]; /* the section goes on */
  snprintf(text, sizeof text, "%.*s, sync: true, average: examples}\n",
           (int)(strlen(kStates) - 2), kStates);
  for (int forever = 0; forever < 2; forever++) {
    bool done = false;
    for (uint64_t k = 1; !done; k++) {
      weir_counted_allocator c;
      weir_counted_allocator_init(&c, NULL);
      c.fail_at = k;
      c.fail_forever = forever != 0;
      weir_error err = WEIR_ERROR_INIT;
      weir_status s = try_split(&c.base, text, &options, &err);
      assert_int_equal(atomic_load(&c.live_blocks), 0);
      done = atomic_load(&c.calls) < k;
      if (done)
        assert_ok(s, &err);
      else
        assert_error(s, &err, "W6001");
      assert_true(k < 100000);
    }
  }
}

/* ---- The graphs of the repository */

static void test_graphs(void **state) {
  (void)state;
  static const struct {
    const char *name;
    weir_param_value params[4];
    size_t count;
    bool global; /* clips by a global norm */
  } kGraphs[] = {
      {"lenet", {{WEIR_SV_LIT("batch"), WEIR_SV_LIT("4")}}, 1, false},
      {"lenet_train", {{{NULL, 0}, {NULL, 0}}}, 0, false},
      {"logistic", {{{NULL, 0}, {NULL, 0}}}, 0, false},
      {"lstm_lm",
       {{WEIR_SV_LIT("batch"), WEIR_SV_LIT("3")},
        {WEIR_SV_LIT("steps"), WEIR_SV_LIT("5")},
        {WEIR_SV_LIT("vocab"), WEIR_SV_LIT("11")},
        {WEIR_SV_LIT("hidden"), WEIR_SV_LIT("8")}},
       4,
       true},
      {"mlp_train", {{{NULL, 0}, {NULL, 0}}}, 0, false},
      {"regression", {{{NULL, 0}, {NULL, 0}}}, 0, false},
      {"rnn_char",
       {{WEIR_SV_LIT("batch"), WEIR_SV_LIT("3")},
        {WEIR_SV_LIT("steps"), WEIR_SV_LIT("5")},
        {WEIR_SV_LIT("vocab"), WEIR_SV_LIT("11")},
        {WEIR_SV_LIT("hidden"), WEIR_SV_LIT("8")}},
       4,
       true},
      {"transformer_train", {{{NULL, 0}, {NULL, 0}}}, 0, true}};
  /* 32 images: kernels may keep them 16 at a time. */
  const weir_param_value batches[] = {
      {WEIR_SV_LIT("data.train.batch"), WEIR_SV_LIT("4")},
      {WEIR_SV_LIT("data.train.batch"), WEIR_SV_LIT("32")}};
  for (size_t i = 0; i < sizeof kGraphs / sizeof *kGraphs; i++) {
    char file[512];
    snprintf(file, sizeof file, "%s/%s.weir.yaml", graphs, kGraphs[i].name);
    bool data = strcmp(kGraphs[i].name, "regression") != 0;
    for (uint32_t aggregate = 1; aggregate <= 2; aggregate++) {
      split_pair_options options = {
          .file = file,
          .params = kGraphs[i].params,
          .param_count = kGraphs[i].count,
          .overrides = data ? &batches[aggregate - 1] : NULL,
          .override_count = data ? 1 : 0,
          .threads = (int)aggregate,
          .split = {.servers = kGraphs[i].global ? 1 : 2,
                    .aggregate = aggregate}};
      pair_check(&options, 4);
    }
  }
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  graphs = argv[1];
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_tables),
                                     cmocka_unit_test(test_deal),
                                     cmocka_unit_test(test_options),
                                     cmocka_unit_test(test_lr_factor),
                                     cmocka_unit_test(test_staleness),
                                     cmocka_unit_test(test_norms_over_servers),
                                     cmocka_unit_test(test_reads),
                                     cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_memory),
                                     cmocka_unit_test(test_optimizers),
                                     cmocka_unit_test(test_rules),
                                     cmocka_unit_test(test_average),
                                     cmocka_unit_test(test_states),
                                     cmocka_unit_test(test_graphs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
