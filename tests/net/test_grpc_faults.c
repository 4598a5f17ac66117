/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/net/grpc_net.h"

/* The gRPC transport's errors for addresses and for ends, and a peer in another
 * process that is killed. */

typedef struct end {
  weir_transport *t;
  weir_connection c;
  int connected, closed, frames;
  size_t bytes;
  weir_close_reason why;
  char text[256];
  bool echo;
  weir_error err;
} end;

static grpc_net shared;
static weir_fixture fixture;
static weir_counted_allocator counted;

static void on_connected(void *self, weir_connection c, weir_sv peer,
                         bool incoming) {
  end *e = self;
  assert_true(peer.size > 0);
  e->connected++;
  if (incoming) e->c = c;
}

static void on_frame(void *self, weir_connection c, weir_net_frame *frame) {
  end *e = self;
  e->frames++;
  e->bytes += frame->size;
  if (!e->echo) return;
  weir_net_piece pieces[64];
  assert_true(frame->count <= 64);
  for (size_t i = 0; i < frame->count; i++)
    pieces[i] = (weir_net_piece){.data = frame->pieces[i].data,
                                 .size = frame->pieces[i].size};
  (void)e->t->vt->send(e->t, c, pieces, frame->count, &e->err);
}

static void on_closed(void *self, weir_connection c, weir_close_reason why,
                      weir_sv text) {
  end *e = self;
  (void)c;
  e->closed++;
  e->why = why;
  snprintf(e->text, sizeof e->text, "%.*s", WEIR_SV(text));
}

static void begin(end *e, const weir_transport_options *options) {
  *e = (end){.err = WEIR_ERROR_INIT};
  weir_transport_handler handler = {e, on_connected, on_frame, on_closed};
  weir_transport_options none = {0};
  assert_ok(grpc_net_create(&fixture, &handler,
                            options != NULL ? options : &none, &e->t, &e->err),
            &e->err);
}

static void turn(end *e) {
  int64_t now = shared.env.clock->now_ns(NULL);
  assert_ok(e->t->vt->poll(e->t, now + 1000000, &e->err), &e->err);
}

static void dial(end *e, const char *address) {
  assert_ok(e->t->vt->connect(e->t, weir_sv_from(address), &e->c, &e->err),
            &e->err);
}

static void finish(end *e) {
  weir_transport_release(e->t);
}

static void all_freed(void) {
  assert_int_equal(atomic_load(&counted.live_blocks), 0);
}

static void refuses_to_listen(end *e, const char *address, const char *says) {
  char bound[WEIR_NET_ADDRESS_BYTES];
  assert_error(e->t->vt->listen(e->t, weir_sv_from(address), bound, &e->err),
               &e->err, "W7002");
  assert_string_equal(bound, "");
  if (strstr(e->err.message, says) == NULL)
    fail_msg("%s: %s", address, e->err.message);
}

static void addresses(void **state) {
  (void)state;
  end e;
  weir_connection c;
  begin(&e, NULL);
  refuses_to_listen(&e, "", "it is empty");
  refuses_to_listen(&e, "127.0.0.1", "it has no port");
  refuses_to_listen(&e, "127.0.0.1:", "it has no port");
  refuses_to_listen(&e, "127.0.0.1:65536", "ports end at 65535");
  refuses_to_listen(&e, "127.0.0.1:99999999999999999999", "ports end");
  refuses_to_listen(&e, "127.0.0.1:-1", "its port is not a number");
  refuses_to_listen(&e, "127.0.0.1:1x", "its port is not a number");
  refuses_to_listen(&e, "::1:5", "stand in []");
  refuses_to_listen(&e, "[::1:5", "a ] is missing");
  refuses_to_listen(&e, "[::1]", "it has no port");
  refuses_to_listen(&e, "[zz]:1", "no address of IPv6");
  refuses_to_listen(&e, "a b:1", "its host is not a name");
  refuses_to_listen(&e, "unix:", "no path");
  refuses_to_listen(&e, "unix:/a\nb", "a control character");
  char text[300] = "unix:/";
  memset(text + 6, 'x', 107);
  refuses_to_listen(&e, text, "end at 107 bytes");
  refuses_to_listen(&e, "unix:/no/such/folder/s", "cannot be made");
  refuses_to_listen(&e, "0.0.0.0:0", "not on this machine's loopback");
  refuses_to_listen(&e, "127.1:0", "not on this machine's loopback");
  refuses_to_listen(&e, "worker-0:0", "not on this machine's loopback");
  refuses_to_listen(&e, "[::2]:0", "not on this machine's loopback");
  assert_error(e.t->vt->connect(e.t, WEIR_SV_LIT("10.0.0.1:1"), &c, &e.err),
               &e.err, "W7002");
  assert_error(e.t->vt->connect(e.t, WEIR_SV_LIT("127.0.0.1:0"), &c, &e.err),
               &e.err, "W7002");
  finish(&e);
  all_freed();
  weir_transport_options open = {.insecure = true};
  begin(&e, &open);
  char bound[WEIR_NET_ADDRESS_BYTES];
  assert_ok(e.t->vt->listen(e.t, WEIR_SV_LIT("0.0.0.0:0"), bound, &e.err),
            &e.err);
  refuses_to_listen(&e, "192.0.2.1:0", "it belongs to another machine");
  finish(&e);
  all_freed();
}

static void listens_once(void **state) {
  (void)state;
  end a, b;
  char folder[] = "/tmp/weir_grpc_XXXXXX", path[64], bound[256], again[256];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "unix:%s/s", folder);
  begin(&a, NULL);
  begin(&b, NULL);
  assert_ok(a.t->vt->listen(a.t, weir_sv_from(path), bound, &a.err), &a.err);
  assert_string_equal(bound, path);
  refuses_to_listen(&b, path, "another process listens there");
  assert_ok(a.t->vt->listen(a.t, WEIR_SV_LIT("127.0.0.1:0"), bound, &a.err),
            &a.err);
  refuses_to_listen(&b, bound, "another process listens there");
  dial(&b, path); /* the first one has its socket still */
  while (b.connected == 0) turn(&a), turn(&b);
  finish(&a);
  assert_ok(b.t->vt->listen(b.t, weir_sv_from(path), again, &b.err), &b.err);
  assert_ok(b.t->vt->listen(b.t, weir_sv_from(bound), again, &b.err), &b.err);
  finish(&b);
  assert_int_equal(rmdir(folder), 0);
  all_freed();
}

/* Dials |address| for |connect_ns| (0: 5 s); the end must say |says|. */
static void fails(const char *address, int64_t connect_ns, const char *says) {
  end e;
  weir_transport_options open = {.insecure = true, .connect_ns = connect_ns};
  begin(&e, &open);
  dial(&e, address);
  while (e.closed == 0) turn(&e);
  assert_int_equal(e.connected, 0);
  if (e.why != WEIR_CLOSED_UNREACHABLE || strstr(e.text, says) == NULL)
    fail_msg("%s: %d %s", address, e.why, e.text);
  finish(&e);
  all_freed();
}

static void says_why(void **state) {
  (void)state;
  fails("127.0.0.1:1", INT64_MAX, "Connection refused");
  fails("unix:/tmp/no such socket", INT64_MAX, "no such socket");
  fails("no-such-name.invalid:1", 0, "");
  /* One that accepts and says nothing. */
  int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in at = {.sin_family = AF_INET};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  assert_int_equal(bind(s, (struct sockaddr *)&at, size), 0);
  assert_int_equal(listen(s, 8), 0);
  assert_int_equal(getsockname(s, (struct sockaddr *)&at, &size), 0);
  char address[64];
  snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(at.sin_port));
  fails(address, 300000000, "no answer within 0.3 s");
  close(s);
}

extern char **environ;

/* Starts this program as a peer that echoes; gives its address. */
static pid_t start_peer(char address[WEIR_NET_ADDRESS_BYTES]) {
  int ends[2];
  pid_t pid;
  char fd[16];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(fcntl(ends[0], F_SETFD, FD_CLOEXEC), 0);
  snprintf(fd, sizeof fd, "%d", ends[1]);
  char *argv[] = {(char *)"peer", fd, NULL};
  assert_int_equal(
      posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
  close(ends[1]);
  ssize_t n = read(ends[0], address, WEIR_NET_ADDRESS_BYTES - 1);
  assert_true(n > 0);
  address[n] = '\0';
  close(ends[0]);
  return pid;
}

static int be_peer(int fd) {
  end e;
  char bound[WEIR_NET_ADDRESS_BYTES];
  begin(&e, NULL);
  e.echo = true;
  if (e.t->vt->listen(e.t, WEIR_SV_LIT("127.0.0.1:0"), bound, &e.err) !=
      WEIR_OK)
    return 1;
  if (write(fd, bound, strlen(bound)) < 0) return 1;
  close(fd);
  for (;;) (void)e.t->vt->poll(e.t, INT64_MAX, &e.err);
}

static void peer_is_killed(void **state) {
  (void)state;
  end e;
  char address[WEIR_NET_ADDRESS_BYTES];
  pid_t pid = start_peer(address);
  begin(&e, NULL);
  dial(&e, address);
  static const uint8_t kBytes[1 << 20] = {1};
  size_t sent = 0;
  int frames = 0;
  for (size_t size = 0; size <= sizeof kBytes; size = 4 * size + 1, frames++) {
    weir_net_piece piece = {.data = kBytes, .size = size};
    assert_ok(e.t->vt->send(e.t, e.c, &piece, 1, &e.err), &e.err);
    sent += size;
  }
  while (e.frames < frames) turn(&e);
  assert_int_equal(e.bytes, sent);
  assert_int_equal(kill(pid, SIGKILL), 0);
  while (e.closed == 0) turn(&e);
  assert_int_equal(e.why, WEIR_CLOSED_RESET);
  assert_string_equal(e.text, "the connection was cut");
  weir_net_piece piece = {.data = "x", .size = 1};
  assert_error(e.t->vt->send(e.t, e.c, &piece, 1, &e.err), &e.err, "W7001");
  assert_int_equal(waitpid(pid, NULL, 0), pid);
  dial(&e, address); /* nobody is there any more */
  while (e.closed == 1) turn(&e);
  assert_int_equal(e.why, WEIR_CLOSED_UNREACHABLE);
  finish(&e);
  all_freed();
}

static void many_connections(void **state) {
  (void)state;
  end a, b;
  char bound[WEIR_NET_ADDRESS_BYTES];
  begin(&a, NULL);
  begin(&b, NULL);
  assert_ok(b.t->vt->listen(b.t, WEIR_SV_LIT("127.0.0.1:0"), bound, &b.err),
            &b.err);
  for (int i = 0; i < 200; i++) {
    dial(&a, bound);
    weir_net_piece piece = {.data = "last words", .size = 10};
    assert_ok(a.t->vt->send(a.t, a.c, &piece, 1, &a.err), &a.err);
    while (a.connected <= i) turn(&a), turn(&b);
    if (i % 2 == 0) a.t->vt->close(a.t, a.c);
  }
  while (b.frames < 200 || b.closed < 100) turn(&a), turn(&b);
  assert_int_equal(b.why, WEIR_CLOSED_BY_PEER);
  assert_int_equal(a.closed, 0);
  finish(&b);
  while (a.closed < 100) turn(&a);
  finish(&a);
  all_freed();
}

/* A process that does not poll for a while, busy or stopped, loses nothing: a
 * peer's silence is judged by the rooms above. */
static void nobody_polls(void **state) {
  (void)state;
  end a, b;
  char bound[WEIR_NET_ADDRESS_BYTES];
  weir_transport_options options = {.max_frame_bytes = (size_t)9 << 20};
  begin(&a, &options);
  begin(&b, &options);
  assert_ok(b.t->vt->listen(b.t, WEIR_SV_LIT("127.0.0.1:0"), bound, &b.err),
            &b.err);
  dial(&a, bound);
  while (a.connected == 0 || b.connected == 0) turn(&a), turn(&b);
  static uint8_t much[8 << 20];
  weir_net_piece piece = {.data = much, .size = sizeof much};
  assert_ok(a.t->vt->send(a.t, a.c, &piece, 1, &a.err), &a.err);
  for (int i = 0; i < 50; i++) { /* one side alone: 5 s */
    int64_t until = shared.env.clock->now_ns(NULL) + 100000000;
    while (shared.env.clock->now_ns(NULL) < until) turn(&a);
  }
  while (b.frames == 0 && a.closed + b.closed == 0) turn(&a), turn(&b);
  if (a.closed + b.closed > 0) fail_msg("%s, %s", a.text, b.text);
  assert_int_equal(b.bytes, sizeof much);
  finish(&a);
  finish(&b);
  all_freed();
}

int main(int argc, char **argv) {
  setenv("GRPC_POLL_STRATEGY", "poll", 0);
  fixture = grpc_net_fixture(&shared, "127.0.0.1:0");
  weir_counted_allocator_init(&counted, NULL);
  const weir_env *env;
  weir_error err = WEIR_ERROR_INIT;
  if (grpc_net_open(&fixture, &counted.base, &env, &err) != WEIR_OK) {
    fprintf(stderr, "%s\n", err.message);
    return 1;
  }
  if (argc == 2) return be_peer(atoi(argv[1]));
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(addresses),        cmocka_unit_test(listens_once),
      cmocka_unit_test(says_why),         cmocka_unit_test(peer_is_killed),
      cmocka_unit_test(many_connections), cmocka_unit_test(nobody_polls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
