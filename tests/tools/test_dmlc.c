/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "runtime/tools/tools.h"
#include "tests/check.h"

/* The environment of ps-lite: each variable is mapped, or refused by name. */

/* "NAME=value NAME=value": the environment of a case. */
static const char *look_up(void *self, const char *name) {
  static char value[64];
  const char *at = self;
  size_t bytes = strlen(name);
  while (at != NULL && *at != '\0') {
    size_t word = strcspn(at, " ");
    if (word > bytes && memcmp(at, name, bytes) == 0 && at[bytes] == '=') {
      snprintf(value, sizeof value, "%.*s", (int)(word - bytes - 1),
               at + bytes + 1);
      return value;
    }
    at += word + strspn(at + word, " ");
  }
  return NULL;
}

static weir_status read_words(const char *words, weir_tools_dmlc *out,
                              weir_error *err) {
  return weir_tools_dmlc_read(look_up, (void *)(uintptr_t)words, out, err);
}

#define JOB                                                     \
  "DMLC_NUM_SERVER=2 DMLC_NUM_WORKER=4 DMLC_PS_ROOT_URI=node0 " \
  "DMLC_PS_ROOT_PORT=9091 "
#define SERVER JOB "DMLC_ROLE=server "
#define WORKER JOB "DMLC_ROLE=worker "
#define SCHEDULER JOB "DMLC_ROLE=scheduler "

static void roles_are_jobs(void **state) {
  (void)state;
  static const char *const roles[][2] = {
      {SCHEDULER, "chief"}, {SERVER, "ps"}, {WORKER, "worker"}};
  for (size_t i = 0; i < 3; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_tools_dmlc d;
    assert_ok(read_words(roles[i][0], &d, &err), &err);
    assert_string_equal(d.job, roles[i][1]);
    assert_string_equal(d.cluster, "ps=2,worker=4");
    assert_string_equal(d.root, "node0");
    assert_int_equal(d.root_port, 9091);
    assert_false(d.ranked);
    assert_int_equal(d.heartbeat_ns, 0);
  }
}

static weir_tools_dmlc sound(const char *words) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tools_dmlc d;
  assert_ok(read_words(words, &d, &err), &err);
  return d;
}

static void others_say_more(void **state) {
  (void)state;
  const int64_t second = 1000000000;
  assert_string_equal(sound(SERVER "DMLC_NODE_HOST=10.0.0.2").host, "10.0.0.2");
  assert_string_equal(sound(SERVER "DMLC_INTERFACE=eth0").interface, "eth0");
  assert_true(sound(WORKER "DMLC_LOCAL=1").local);
  assert_false(sound(WORKER "DMLC_LOCAL=0").local);
  assert_true(sound(SCHEDULER "DMLC_USE_KUBERNETES=1").any_host);
  assert_false(sound(SERVER "DMLC_USE_KUBERNETES=1").any_host);
  assert_int_equal(sound(SERVER "PORT=5000").port, 5000);
  assert_int_equal(sound(WORKER "PORT=5000").port, 0);
  assert_true(sound(SERVER "DMLC_RANK=1").ranked);
  assert_int_equal(sound(SERVER "DMLC_SERVER_ID=1").rank, 1);
  assert_int_equal(sound(WORKER "DMLC_WORKER_ID=3 DMLC_RANK=3").rank, 3);
  assert_int_equal(sound(WORKER "PS_HEARTBEAT_INTERVAL=2").heartbeat_ns,
                   2 * second);
  assert_int_equal(sound(WORKER "PS_HEARTBEAT_TIMEOUT=20").heartbeat_ns,
                   4 * second);
  assert_int_equal(
      sound(WORKER "PS_HEARTBEAT_TIMEOUT=20 PS_HEARTBEAT_INTERVAL=4")
          .heartbeat_ns,
      4 * second);
  /* What is asked for is so already. */
  (void)sound(WORKER
              "DMLC_PS_VAN_TYPE=zmq PS_RESEND=1 PS_DROP_MSG=0 PS_VERBOSE=1 "
              "DMLC_GROUP_SIZE=1 DMLC_ENABLE_RDMA=0 DMLC_ENABLE_UCX=0 "
              "DMLC_TASK_ID=7 DMLC_NUM_ATTEMPT=0 DMLC_JOB_CLUSTER=local "
              "DMLC_PS_WATER_MARK=");
}

static void the_rest_is_refused_by_name(void **state) {
  (void)state;
  static const struct {
    const char *words, *says;
  } rows[] = {
      {"", "the environment has no DMLC_ROLE"},
      {"DMLC_ROLE=server", "the environment has no DMLC_NUM_SERVER"},
      {"DMLC_ROLE=server DMLC_NUM_SERVER=1", "has no DMLC_NUM_WORKER"},
      {"DMLC_ROLE=server DMLC_NUM_SERVER=1 DMLC_NUM_WORKER=1",
       "has no DMLC_PS_ROOT_URI"},
      {"DMLC_ROLE=server DMLC_NUM_SERVER=1 DMLC_NUM_WORKER=1 "
       "DMLC_PS_ROOT_URI=a",
       "has no DMLC_PS_ROOT_PORT"},
      {"DMLC_ROLE=boss", "DMLC_ROLE=boss: there are scheduler, server and"},
      {"DMLC_NUM_SERVER=0", "DMLC_NUM_SERVER=0: it is to be a whole number"},
      {"DMLC_NUM_SERVER=65", "from 1 to 64"},
      {"DMLC_NUM_WORKER=two", "DMLC_NUM_WORKER=two: it is to be a whole"},
      {"DMLC_NUM_WORKER=-1", "DMLC_NUM_WORKER=-1: it is"},
      {"DMLC_NUM_WORKER=99999999999999999999999", "from 1 to 1024"},
      {"DMLC_PS_ROOT_URI=tcp://a", "the name or the address of a machine"},
      {"DMLC_PS_ROOT_PORT=0", "DMLC_PS_ROOT_PORT=0: it is to be"},
      {"DMLC_PS_ROOT_PORT=70000", "from 1 to 65535"},
      {"DMLC_PS_ROOT_PORT=1a", "DMLC_PS_ROOT_PORT=1a:"},
      {SERVER "DMLC_NODE_HOST=a/b", "DMLC_NODE_HOST=a/b:"},
      {SERVER "DMLC_NODE_HOST=a DMLC_INTERFACE=b", "one is to go"},
      {SERVER "DMLC_LOCAL=yes", "DMLC_LOCAL=yes:"},
      {SERVER "DMLC_USE_KUBERNETES=2", "DMLC_USE_KUBERNETES=2:"},
      {SERVER "PORT=http", "PORT=http:"},
      {SERVER "DMLC_RANK=2", "there is no rank 2: the job has 2"},
      {SCHEDULER "DMLC_RANK=1", "there is no rank 1: the job has 1"},
      {WORKER "DMLC_WORKER_ID=1 DMLC_RANK=2", "are not the same"},
      {SERVER "DMLC_WORKER_ID=1", "DMLC_WORKER_ID=1: this process has"},
      {WORKER "DMLC_SERVER_ID=1", "DMLC_SERVER_ID=1: this process has"},
      {WORKER "DMLC_PS_VAN_TYPE=ibverbs", "DMLC_PS_VAN_TYPE=ibverbs: frames"},
      {WORKER "DMLC_PS_VAN_TYPE=p3", "DMLC_PS_VAN_TYPE=p3:"},
      {WORKER "DMLC_GROUP_SIZE=2", "DMLC_GROUP_SIZE=2: a process is one"},
      {WORKER "DMLC_PS_WATER_MARK=10", "DMLC_PS_WATER_MARK=10: what waits"},
      {WORKER "DMLC_ENABLE_RDMA=1", "DMLC_ENABLE_RDMA=1: there is no RDMA"},
      {WORKER "DMLC_ENABLE_RDMA=ibverbs", "there is no RDMA"},
      {WORKER "DMLC_ENABLE_UCX=1", "there is no UCX"},
      {WORKER "DMLC_TRACKER_URI=a", "DMLC_TRACKER_URI=a: there is no rabit"},
      {WORKER "DMLC_TRACKER_PORT=1", "DMLC_TRACKER_PORT=1:"},
      {WORKER "PS_HEARTBEAT_INTERVAL=0", "PS_HEARTBEAT_INTERVAL=0:"},
      {WORKER "PS_HEARTBEAT_TIMEOUT=0", "PS_HEARTBEAT_TIMEOUT=0:"},
      {WORKER "PS_HEARTBEAT_TIMEOUT=7 PS_HEARTBEAT_INTERVAL=2",
       "PS_HEARTBEAT_TIMEOUT=7: a process is lost after five heartbeats"},
      {WORKER "PS_RESEND=0", "PS_RESEND=0: what was not acknowledged"},
      {WORKER "PS_RESEND_TIMEOUT=100", "PS_RESEND_TIMEOUT=100:"},
      {WORKER "PS_DROP_MSG=10", "PS_DROP_MSG=10: no message is dropped"},
      {WORKER "PS_VERBOSE=2", "PS_VERBOSE=2: there is no log of each"},
      {WORKER "PS_VERBOSE=x", "PS_VERBOSE=x:"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_tools_dmlc d;
    assert_int_equal(read_words(rows[i].words, &d, &err),
                     WEIR_INVALID_ARGUMENT);
    assert_string_equal(err.id, "W7082");
    if (strstr(err.message, rows[i].says) == NULL)
      fail_msg("%s: %s", rows[i].words, err.message);
  }
}

/* Each name of the list is in a case above: any value that none of them takes.
 */
static void each_variable_is_looked_up(void **state) {
  (void)state;
  const char *name = NULL;
  uint32_t refused = 0, passed = 0;
  for (size_t i = 0; i < weir_tools_dmlc_names(i, &name); i++) {
    char words[256];
    weir_error err = WEIR_ERROR_INIT;
    weir_tools_dmlc d;
    snprintf(words, sizeof words, "%s=@ " WORKER, name);
    if (read_words(words, &d, &err) == WEIR_OK) {
      passed++;
      continue;
    }
    assert_non_null(strstr(err.message, name));
    refused++;
  }
  assert_int_equal(passed, 3); /* DMLC_TASK_ID and so on: of launchers */
  assert_int_equal(refused + passed, weir_tools_dmlc_names(SIZE_MAX, &name));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(roles_are_jobs), cmocka_unit_test(others_say_more),
      cmocka_unit_test(the_rest_is_refused_by_name),
      cmocka_unit_test(each_variable_is_looked_up)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
