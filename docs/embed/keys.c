/* SPDX-License-Identifier: Apache-2.0
 * A program that learns an embedding table on a server of keys: for each of 100
 * words a vector of 4 numbers, pulled and pushed by rows. One process of each
 * task:
 *   cc keys.c $(pkg-config --cflags --libs weir) -o keys
 *   ./keys ps     0 unix:/tmp/keys &
 *   ./keys worker 0 unix:/tmp/keys &
 *   ./keys worker 1 unix:/tmp/keys */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>

enum { WORDS = 100, WIDTH = 4, BATCH = 8, STEPS = 50 };

static weir_kv_server *server;

static void on_signal(int number) {
  (void)number;
  weir_kv_server_stop(server);
}

static weir_status serve(weir_runtime *runtime, const weir_kv_opts *opts,
                         weir_error *err) {
  weir_status s = weir_kv_server_create(runtime, opts, &server, err);
  signal(SIGTERM, on_signal);
  if (s == WEIR_OK) {
    printf("listening at %s\n", weir_kv_server_address(server));
    fflush(stdout);
    s = weir_kv_server_run(server, err);
  }
  weir_kv_server_release(server);
  return s;
}

/* Waits for an op, if it was begun, and lets it go. */
static weir_status finish(weir_status s, weir_kv_handle *handle,
                          weir_error *err) {
  if (s == WEIR_OK) s = weir_kv_wait(handle, -1, NULL, err);
  weir_kv_handle_release(handle);
  return s;
}

/* The vector of word w is to become (w, w + 1, w + 2, w + 3) / 100: the
 * gradient of the square of the difference is the difference. */
static weir_status step(weir_kv *kv, uint32_t worker, int at, weir_tensor *ids,
                        weir_tensor *rows, weir_error *err) {
  int64_t *word = weir_tensor_mutable_data(ids);
  float *x = weir_tensor_mutable_data(rows);
  weir_kv_op_opts by_row = {.struct_size = sizeof by_row, .ids = ids};
  weir_kv_handle *handle = NULL;
  for (int i = 0; i < BATCH; i++)
    word[i] = (at * BATCH + i * 7 + (int)worker * 50) % WORDS;
  weir_status s = weir_kv_pull(kv, "words", rows, &by_row, &handle, err);
  s = finish(s, handle, err);
  for (int i = 0; s == WEIR_OK && i < BATCH * WIDTH; i++)
    x[i] -= (float)(word[i / WIDTH] + i % WIDTH) / 100;
  handle = NULL;
  if (s == WEIR_OK) s = weir_kv_push(kv, "words", rows, &by_row, &handle, err);
  return finish(s, handle, err);
}

static weir_status learn(weir_kv *kv, weir_runtime *runtime, uint32_t worker,
                         weir_error *err) {
  const int64_t table[] = {WORDS, WIDTH}, batch[] = {BATCH, WIDTH};
  weir_kv_key_opts key = {.struct_size = sizeof key,
                          .dtype = WEIR_F32,
                          .rank = 2,
                          .dims = table,
                          .rule = "sgd(lr=0.5)"};
  weir_tensor *ids = NULL, *rows = NULL, *all = NULL;
  weir_kv_handle *handle = NULL;
  weir_kv_result result = {.struct_size = sizeof result};
  float worst = 0;
  weir_status s = weir_kv_declare(kv, "words", &key, err);
  if (s == WEIR_OK)
    s = weir_tensor_create(runtime, WEIR_I64, 1, batch, &ids, err);
  if (s == WEIR_OK)
    s = weir_tensor_create(runtime, WEIR_F32, 2, batch, &rows, err);
  if (s == WEIR_OK)
    s = weir_tensor_create(runtime, WEIR_F32, 2, table, &all, err);
  for (int i = 0; s == WEIR_OK && i < STEPS; i++)
    s = step(kv, worker, i, ids, rows, err);
  /* Until both workers have pushed all of theirs. */
  if (s == WEIR_OK) s = weir_kv_barrier(kv, "learnt", NULL, &handle, err);
  s = finish(s, handle, err);
  handle = NULL;
  if (s == WEIR_OK) s = weir_kv_pull(kv, "words", all, NULL, &handle, err);
  if (s == WEIR_OK) s = weir_kv_wait(handle, -1, &result, err);
  weir_kv_handle_release(handle);
  for (int i = 0; s == WEIR_OK && i < WORDS * WIDTH; i++) {
    const float *x = weir_tensor_data(all);
    float off = x[i] - (float)(i / WIDTH + i % WIDTH) / 100;
    if (off < 0) off = -off;
    if (off > worst) worst = off;
  }
  if (s == WEIR_OK)
    printf("%u pushes, %s\n", (unsigned)result.version,
           worst < 0.2f ? "learnt" : "not learnt");
  weir_tensor_release(ids);
  weir_tensor_release(rows);
  weir_tensor_release(all);
  return s;
}

static weir_status work(weir_runtime *runtime, const weir_kv_opts *opts,
                        weir_error *err) {
  weir_kv *kv = NULL;
  weir_kv_handle *handle = NULL;
  weir_status s = weir_kv_open(runtime, opts, &kv, err);
  if (s == WEIR_OK) s = learn(kv, runtime, opts->index, err);
  /* A worker that leaves breaks barriers, so both leave together. */
  if (s == WEIR_OK) s = weir_kv_barrier(kv, "end", NULL, &handle, err);
  s = finish(s, handle, err);
  weir_kv_close(kv);
  return s;
}

int main(int argc, char **argv) {
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = NULL;
  if (argc != 4) {
    fprintf(stderr, "usage: keys ps|worker INDEX ADDRESS\n");
    return 2;
  }
  const char *addresses[] = {argv[3], "", ""};
  weir_kv_opts opts = {.struct_size = sizeof opts,
                       .cluster = "ps=1,worker=2",
                       .addresses = addresses,
                       .address_count = 3,
                       .job = argv[1],
                       .index = (uint32_t)atoi(argv[2])};
  weir_status s = weir_runtime_create(NULL, &runtime, &err);
  if (s == WEIR_OK && strcmp(argv[1], "ps") == 0)
    s = serve(runtime, &opts, &err);
  else if (s == WEIR_OK)
    s = work(runtime, &opts, &err);
  if (s != WEIR_OK) fprintf(stderr, "%s: %s\n", err.id, err.message);
  weir_runtime_release(runtime);
  return s == WEIR_OK ? 0 : 1;
}
