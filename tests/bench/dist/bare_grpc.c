/* SPDX-License-Identifier: Apache-2.0
 *
 * gRPC core with nothing on top of it: `bare_grpc BYTES [add | tls CERT KEY]`.
 * The certificate is its own authority, for the name "bare". A reader asks,
 * the other process answers with BYTES in messages of 1 MiB that it does not
 * copy; the reader copies them where they are wanted, or adds them as floats to
 * those that are there, and gives credit back, 8 MiB being under way at most.
 * 64 bytes are a ping-pong. One thread and one queue in each process; one
 * stream, which weir uses as well; malloc keeps its memory, without which gRPC
 * spends its time in page faults. */
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>
#include <malloc.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/dist/asked.h"

enum { CHUNK = 1 << 20, CREDIT = 8 << 20 };
/* Tags. */
enum { OTHER, SENT, RECEIVED };

/* A message of the reader: ask for a value, or credit for so many bytes. */
typedef struct word {
  uint64_t ask, credit;
} word;

typedef struct peer {
  grpc_completion_queue *queue;
  grpc_call *call;
  uint8_t *data;
  size_t bytes;
  grpc_byte_buffer *out, *in;
  bool sending, over;
  /* The reader's. */
  size_t got, owed;
  bool adds;
  const char *cert, *key; /* files; NULL: no TLS */
  /* The sender's. */
  size_t left, credit;
} peer;

static void *tag(intptr_t which) {
  return (void *)which;
}

static void batch(const peer *p, const grpc_op *op, intptr_t which) {
  if (grpc_call_start_batch(p->call, op, 1, tag(which), NULL) != GRPC_CALL_OK)
    exit(7);
}

static void receive(peer *p) {
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
  op.data.recv_message.recv_message = &p->in;
  batch(p, &op, RECEIVED);
}

static void send_slice(peer *p, grpc_slice slice) {
  grpc_op op = {.op = GRPC_OP_SEND_MESSAGE};
  p->out = grpc_raw_byte_buffer_create(&slice, 1);
  op.data.send_message.send_message = p->out;
  p->sending = true;
  batch(p, &op, SENT);
}

static void send_word(peer *p, word w) {
  grpc_slice slice = grpc_slice_from_copied_buffer((char *)&w, sizeof w);
  send_slice(p, slice);
  grpc_slice_unref(slice);
}

/* ---- The sender */

static void send_next(peer *p) {
  size_t size = p->left < CHUNK ? p->left : CHUNK;
  if (p->sending || size == 0 || size > p->credit) return;
  grpc_slice slice =
      grpc_slice_from_static_buffer(p->data + p->bytes - p->left, size);
  p->left -= size;
  p->credit -= size;
  send_slice(p, slice);
}

static void take_word(peer *p, grpc_byte_buffer_reader *reader) {
  word w = {0, 0};
  grpc_slice all = grpc_byte_buffer_reader_readall(reader);
  memcpy(&w, GRPC_SLICE_START_PTR(all), sizeof w);
  grpc_slice_unref(all);
  p->credit += w.credit;
  if (w.ask != 0) p->left = p->bytes;
}

/* ---- The reader */

/* Floats that lie anywhere, as pieces of a stream do. */
static void add(uint8_t *to, const uint8_t *from, size_t bytes) {
  for (size_t i = 0; i < bytes / sizeof(float); i++) {
    float x, y;
    memcpy(&x, to + i * sizeof x, sizeof x);
    memcpy(&y, from + i * sizeof y, sizeof y);
    x += y;
    memcpy(to + i * sizeof x, &x, sizeof x);
  }
}

static void take_data(peer *p, grpc_byte_buffer_reader *reader) {
  grpc_slice slice;
  while (grpc_byte_buffer_reader_next(reader, &slice)) {
    size_t size = GRPC_SLICE_LENGTH(slice);
    if (p->adds)
      add(p->data + p->got, GRPC_SLICE_START_PTR(slice), size);
    else
      memcpy(p->data + p->got, GRPC_SLICE_START_PTR(slice), size);
    p->got += size;
    p->owed += size;
    grpc_slice_unref(slice);
  }
}

static void give_credit(peer *p) {
  if (p->sending || p->owed < CHUNK) return;
  send_word(p, (word){.credit = p->owed});
  p->owed = 0;
}

/* ---- Both */

static void on_received(peer *p, bool reads) {
  grpc_byte_buffer_reader reader;
  grpc_byte_buffer *in = p->in;
  p->over = in == NULL;
  if (in == NULL) return;
  grpc_byte_buffer_reader_init(&reader, in);
  if (reads)
    take_data(p, &reader);
  else
    take_word(p, &reader);
  grpc_byte_buffer_reader_destroy(&reader);
  grpc_byte_buffer_destroy(in);
  receive(p);
}

static void step(peer *p, bool reads) {
  gpr_timespec never = gpr_inf_future(GPR_CLOCK_REALTIME);
  grpc_event e = grpc_completion_queue_next(p->queue, never, NULL);
  if (e.tag == tag(SENT)) {
    grpc_byte_buffer_destroy(p->out);
    p->sending = false;
  } else if (e.tag == tag(RECEIVED)) {
    on_received(p, reads);
  }
  if (reads)
    give_credit(p);
  else
    send_next(p);
}

static bool ask(void *self) {
  peer *p = self;
  p->got = 0;
  send_word(p, (word){.ask = 1});
  while (!p->over && (p->got < p->bytes || p->sending)) step(p, true);
  return !p->over;
}

/* ---- Connections */

static void begin(peer *p, bool server) {
  static grpc_metadata_array headers, trailers;
  static grpc_status_code status;
  static grpc_slice details;
  static int cancelled;
  grpc_op ops[4] = {{.op = GRPC_OP_SEND_INITIAL_METADATA}};
  batch(p, &ops[0], OTHER);
  if (server) {
    ops[1].op = GRPC_OP_RECV_CLOSE_ON_SERVER;
    ops[1].data.recv_close_on_server.cancelled = &cancelled;
    batch(p, &ops[1], OTHER);
  } else {
    grpc_metadata_array_init(&headers);
    grpc_metadata_array_init(&trailers);
    ops[1].op = GRPC_OP_RECV_INITIAL_METADATA;
    ops[1].data.recv_initial_metadata.recv_initial_metadata = &headers;
    ops[2].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    ops[2].data.recv_status_on_client.trailing_metadata = &trailers;
    ops[2].data.recv_status_on_client.status = &status;
    ops[2].data.recv_status_on_client.status_details = &details;
    batch(p, &ops[1], OTHER);
    batch(p, &ops[2], OTHER);
  }
  receive(p);
}

/* Of a file, with a 0 behind it. */
static char *text_of(const char *path) {
  char *text = calloc(1, 1 << 16);
  FILE *f = fopen(path, "rb");
  if (text == NULL || f == NULL || fread(text, 1, (1 << 16) - 1, f) == 0)
    exit(7);
  fclose(f);
  return text;
}

static grpc_server_credentials *server_credentials(const peer *p) {
  if (p->cert == NULL) return grpc_insecure_server_credentials_create();
  grpc_ssl_pem_key_cert_pair own = {text_of(p->key), text_of(p->cert)};
  return grpc_ssl_server_credentials_create(NULL, &own, 1, 0, NULL);
}

static grpc_channel_credentials *credentials(const peer *p) {
  if (p->cert == NULL) return grpc_insecure_credentials_create();
  return grpc_ssl_credentials_create(text_of(p->cert), NULL, NULL, NULL);
}

static void serve(peer *p, int to) {
  grpc_call_details details;
  grpc_metadata_array headers;
  grpc_server *server = grpc_server_create(NULL, NULL);
  grpc_server_credentials *creds = server_credentials(p);
  grpc_server_register_completion_queue(server, p->queue, NULL);
  int port = grpc_server_add_http2_port(server, "127.0.0.1:0", creds);
  grpc_server_start(server);
  grpc_call_details_init(&details);
  grpc_metadata_array_init(&headers);
  grpc_server_request_call(server, &p->call, &details, &headers, p->queue,
                           p->queue, tag(OTHER));
  if (write(to, &port, sizeof port) != sizeof port) exit(7);
  while (p->call == NULL) step(p, false);
  p->credit = CREDIT;
  begin(p, true);
  while (!p->over) step(p, false);
}

static void dial(peer *p, int from) {
  char address[32];
  int port = 0;
  if (read(from, &port, sizeof port) != sizeof port || port == 0) exit(7);
  snprintf(address, sizeof address, "127.0.0.1:%d", port);
  grpc_arg most[] = {{.type = GRPC_ARG_INTEGER,
                      .key = GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
                      .value = {.integer = 2 * CHUNK}},
                     {.type = GRPC_ARG_STRING,
                      .key = GRPC_SSL_TARGET_NAME_OVERRIDE_ARG,
                      .value = {.string = "bare"}}};
  grpc_channel_args args = {p->cert != NULL ? 2 : 1, most};
  grpc_channel_credentials *creds = credentials(p);
  grpc_channel *channel = grpc_channel_create(address, creds, &args);
  p->call = grpc_channel_create_call(
      channel, NULL, 0, p->queue, grpc_slice_from_static_string("/bare"), NULL,
      gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
  begin(p, false);
}

int main(int argc, char **argv) {
  peer p = {.bytes = argc >= 2 ? strtoull(argv[1], NULL, 10) : 0,
            .adds = argc >= 3 && strcmp(argv[2], "add") == 0};
  if (argc == 5) p.cert = argv[3], p.key = argv[4];
  int pipes[2];
  p.data = malloc(p.bytes + 1);
  if (p.bytes == 0 || p.data == NULL || pipe(pipes) != 0) return 2;
  memset(p.data, 0, p.bytes); /* zeros, which sums leave so */
  mallopt(M_TRIM_THRESHOLD, 2000000000);
  mallopt(M_TOP_PAD, 64 << 20);
  setenv("GRPC_POLL_STRATEGY", "poll", 0);
  pid_t child = fork(); /* nobody forks after grpc_init */
  close(pipes[child != 0]);
  grpc_init();
  p.queue = grpc_completion_queue_create_for_next(NULL);
  if (child == 0) {
    serve(&p, pipes[1]);
    _exit(0);
  }
  dial(&p, pipes[0]);
  int code = asked_serve(ask, &p);
  (void)grpc_call_cancel(p.call, NULL); /* the other process ends */
  for (int i = 0; i < 8 && !p.over; i++) step(&p, true);
  (void)waitpid(child, NULL, 0);
  fflush(stdout);
  _exit(code);
}
