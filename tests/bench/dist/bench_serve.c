/* SPDX-License-Identifier: Apache-2.0
 *
 * A client of weir predict --serve on gRPC core:
 *
 *   bench_serve ADDRESS REQUEST_FILE INFLIGHT SECONDS
 *
 * The file has the bytes of one weir.v1.PredictRequest, which is sent over and
 * over, INFLIGHT calls being under way at any time, on one connection and one
 * thread. Prints the answers a second and the p50 and p99 of a call in
 * microseconds. The first tenth of the time warms up and does not count. */
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_CALLS = 1024, MOST_TIMES = 1 << 20, MOST_BYTES = 64 << 20 };

typedef struct client client;

typedef struct call {
  client *owner;
  grpc_call *call;
  grpc_byte_buffer *in;
  grpc_metadata_array first, last;
  grpc_status_code code;
  grpc_slice words;
  int64_t begun_ns;
} call;

struct client {
  grpc_completion_queue *queue;
  grpc_channel *channel;
  grpc_slice message;
  int64_t counts_ns, until_ns; /* calls that begin between them count */
  uint64_t answers;
  uint32_t *times_us;
  size_t time_count;
  call calls[MOST_CALLS];
};

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void start(call *c) {
  client *k = c->owner;
  grpc_slice method = grpc_slice_from_static_string("/weir.v1.Predict/Predict");
  grpc_byte_buffer *out = grpc_raw_byte_buffer_create(&k->message, 1);
  c->call =
      grpc_channel_create_call(k->channel, NULL, 0, k->queue, method, NULL,
                               gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  grpc_metadata_array_init(&c->first);
  grpc_metadata_array_init(&c->last);
  c->in = NULL;
  grpc_op ops[6] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                    {.op = GRPC_OP_SEND_MESSAGE},
                    {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
                    {.op = GRPC_OP_RECV_INITIAL_METADATA},
                    {.op = GRPC_OP_RECV_MESSAGE},
                    {.op = GRPC_OP_RECV_STATUS_ON_CLIENT}};
  ops[1].data.send_message.send_message = out;
  ops[3].data.recv_initial_metadata.recv_initial_metadata = &c->first;
  ops[4].data.recv_message.recv_message = &c->in;
  ops[5].data.recv_status_on_client.trailing_metadata = &c->last;
  ops[5].data.recv_status_on_client.status = &c->code;
  ops[5].data.recv_status_on_client.status_details = &c->words;
  c->begun_ns = now_ns();
  if (grpc_call_start_batch(c->call, ops, 6, c, NULL) != GRPC_CALL_OK) exit(7);
  grpc_byte_buffer_destroy(out);
}

static void end(call *c) {
  client *k = c->owner;
  int64_t now = now_ns();
  if (c->code != GRPC_STATUS_OK) {
    fprintf(stderr, "status %d: %.*s\n", (int)c->code,
            (int)GRPC_SLICE_LENGTH(c->words),
            (const char *)GRPC_SLICE_START_PTR(c->words));
    exit(6);
  }
  if (c->begun_ns >= k->counts_ns && now <= k->until_ns) {
    k->answers++;
    if (k->time_count < MOST_TIMES)
      k->times_us[k->time_count++] = (uint32_t)((now - c->begun_ns) / 1000);
  }
  grpc_slice_unref(c->words);
  grpc_metadata_array_destroy(&c->first);
  grpc_metadata_array_destroy(&c->last);
  if (c->in != NULL) grpc_byte_buffer_destroy(c->in);
  grpc_call_unref(c->call);
}

static grpc_slice read_message(const char *path) {
  FILE *f = fopen(path, "rb");
  uint8_t *data = malloc(MOST_BYTES);
  if (f == NULL || data == NULL) exit(5);
  size_t size = fread(data, 1, MOST_BYTES, f);
  fclose(f);
  grpc_slice slice = grpc_slice_from_copied_buffer((char *)data, size);
  free(data);
  return slice;
}

static int by_value(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void serve_calls(client *k, int inflight) {
  for (int i = 0; i < inflight; i++) {
    k->calls[i].owner = k;
    start(&k->calls[i]);
  }
  for (int under_way = inflight; under_way > 0;) {
    grpc_event e = grpc_completion_queue_next(
        k->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    if (e.type != GRPC_OP_COMPLETE) exit(7);
    end(e.tag);
    if (now_ns() < k->until_ns)
      start(e.tag);
    else
      under_way--;
  }
}

int main(int argc, char **argv) {
  static client k;
  if (argc != 5) return 2;
  int inflight = atoi(argv[3]);
  if (inflight < 1 || inflight > MOST_CALLS) return 2;
  int64_t ns = (int64_t)(atof(argv[4]) * 1e9);
  setenv("GRPC_POLL_STRATEGY", "poll", 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
  grpc_init();
  k.queue = grpc_completion_queue_create_for_next(NULL);
  k.times_us = malloc(MOST_TIMES * sizeof *k.times_us);
  if (k.times_us == NULL) return 7;
  k.message = read_message(argv[2]);
  grpc_channel_credentials *plain = grpc_insecure_credentials_create();
  k.channel = grpc_channel_create(argv[1], plain, NULL);
  k.counts_ns = now_ns() + ns / 10;
  k.until_ns = k.counts_ns + ns;
  serve_calls(&k, inflight);
  qsort(k.times_us, k.time_count, sizeof *k.times_us, by_value);
  size_t n = k.time_count;
  printf("%.1f answers/s, p50 %u us, p99 %u us\n",
         (double)k.answers * 1e9 / (double)ns, n > 0 ? k.times_us[n / 2] : 0,
         n > 0 ? k.times_us[n - 1 - n / 100] : 0);
  return 0; /* the system takes the rest */
}
