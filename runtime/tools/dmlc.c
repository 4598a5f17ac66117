/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of ps-lite, as a job of weir.
 *
 * A variable is a row of kRows: how it is read, or why it is refused. A
 * variable that is set and empty counts as not set, as ps-lite's launchers pass
 * on what they do not have. Nothing here looks at the network. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/table.h"
#include "runtime/dist/ps/ps.h"
#include "runtime/tools/tools.h"

typedef struct reading {
  weir_tools_dmlc *out;
  const char *name, *text; /* the variable at hand */
  int64_t servers, workers, rank, own_rank, interval, timeout;
  weir_error *err;
} reading;

static weir_status refuse(const reading *r, const char *says) {
  return weir_fail(r->err, WEIR_W7082, NULL, "%s=%.64s: %s", r->name, r->text,
                   says);
}

static weir_status read_number(const reading *r, int64_t least, int64_t most,
                               int64_t *out) {
  size_t digits = strspn(r->text, "0123456789");
  int64_t n = 0;
  for (size_t i = 0; i < digits && n <= most; i++)
    n = 10 * n + (r->text[i] - '0');
  *out = n;
  if (r->text[digits] == '\0' && n >= least && n <= most) return WEIR_OK;
  return weir_fail(r->err, WEIR_W7082, NULL,
                   "%s=%.64s: it is to be a whole number from %" PRId64
                   " to %" PRId64,
                   r->name, r->text, least, most);
}

/* ---- Variables that are mapped */

static weir_status read_role(reading *r) {
  static const char *const kRoles[][2] = {
      {"scheduler", "chief"}, {"server", "ps"}, {"worker", "worker"}};
  for (size_t i = 0; i < sizeof kRoles / sizeof *kRoles; i++)
    if (strcmp(r->text, kRoles[i][0]) == 0) r->out->job = kRoles[i][1];
  if (r->out->job != NULL) return WEIR_OK;
  return refuse(r, "there are scheduler, server and worker");
}

static weir_status read_servers(reading *r) {
  return read_number(r, 1, WEIR_PS_SERVERS, &r->servers);
}

static weir_status read_workers(reading *r) {
  return read_number(r, 1, WEIR_PS_WORKERS, &r->workers);
}

static weir_status read_host(const reading *r,
                             char out[WEIR_TOOLS_DMLC_BYTES]) {
  size_t n = strlen(r->text);
  size_t sound = strspn(r->text,
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                        "0123456789.-_:");
  if (sound < n || n >= WEIR_TOOLS_DMLC_BYTES)
    return refuse(r, "it is to be the name or the address of a machine");
  memcpy(out, r->text, n + 1);
  return WEIR_OK;
}

static weir_status read_root(reading *r) {
  return read_host(r, r->out->root);
}

static weir_status read_node_host(reading *r) {
  return read_host(r, r->out->host);
}

static weir_status read_interface(reading *r) {
  return read_host(r, r->out->interface);
}

static weir_status read_port_to(const reading *r, uint32_t *out) {
  int64_t port;
  WEIR_TRY(read_number(r, 1, 65535, &port));
  *out = (uint32_t)port;
  return WEIR_OK;
}

static weir_status read_root_port(reading *r) {
  return read_port_to(r, &r->out->root_port);
}

static weir_status read_port(reading *r) {
  return read_port_to(r, &r->out->port);
}

static weir_status read_switch(const reading *r, bool *out) {
  int64_t n;
  WEIR_TRY(read_number(r, 0, 1, &n));
  *out = n == 1;
  return WEIR_OK;
}

static weir_status read_local(reading *r) {
  return read_switch(r, &r->out->local);
}

static weir_status read_kubernetes(reading *r) {
  return read_switch(r, &r->out->any_host);
}

static weir_status read_rank(reading *r) {
  return read_number(r, 0, WEIR_PS_WORKERS - 1, &r->rank);
}

/* Of one role: others may not have it. */
static weir_status read_own_rank(reading *r) {
  bool server = strcmp(r->name, "DMLC_SERVER_ID") == 0;
  if (r->out->job == NULL) return WEIR_OK; /* refused for that */
  if (strcmp(r->out->job, server ? "ps" : "worker") != 0)
    return refuse(r, "this process has another role");
  return read_number(r, 0, WEIR_PS_WORKERS - 1, &r->own_rank);
}

static weir_status read_interval(reading *r) {
  return read_number(r, 1, 3600, &r->interval);
}

static weir_status read_timeout(reading *r) {
  return read_number(r, 1, 18000, &r->timeout);
}

static weir_status read_van(reading *r) {
  if (strcmp(r->text, "zmq") == 0 || strcmp(r->text, "0") == 0) return WEIR_OK;
  return refuse(r, "frames go over TCP, which is zmq there");
}

static weir_status read_verbose(reading *r) {
  int64_t n;
  WEIR_TRY(read_number(r, 0, 2, &n));
  if (n < 2) return WEIR_OK; /* links and processes are always told of */
  return refuse(r, "there is no log of each message");
}

static weir_status read_group(reading *r) {
  int64_t n;
  WEIR_TRY(read_number(r, 1, 1 << 20, &n));
  return n == 1 ? WEIR_OK : refuse(r, "a process is one server or worker");
}

static weir_status read_resend(reading *r) {
  bool on;
  WEIR_TRY(read_switch(r, &on));
  if (on) return WEIR_OK;
  return refuse(r, "what was not acknowledged is always sent again");
}

static weir_status read_drop(reading *r) {
  int64_t n;
  WEIR_TRY(read_number(r, 0, 100, &n));
  return n == 0 ? WEIR_OK : refuse(r, "no message is dropped on purpose");
}

/* Of launchers, for themselves; ps-lite does not read them either. */
static weir_status pass_over(reading *r) {
  (void)r;
  return WEIR_OK;
}

/* ---- The list */

static const struct {
  const char *name;
  weir_status (*read)(reading *r);
  const char *says; /* why it is refused, where nothing reads it; else NULL */
} kRows[] = {
    {"DMLC_ROLE", read_role, NULL}, /* first: others depend on it */
    {"DMLC_NUM_SERVER", read_servers, NULL},
    {"DMLC_NUM_WORKER", read_workers, NULL},
    {"DMLC_PS_ROOT_URI", read_root, NULL},
    {"DMLC_PS_ROOT_PORT", read_root_port, NULL},
    {"DMLC_NODE_HOST", read_node_host, NULL},
    {"DMLC_INTERFACE", read_interface, NULL},
    {"DMLC_LOCAL", read_local, NULL},
    {"DMLC_USE_KUBERNETES", read_kubernetes, NULL},
    {"PORT", read_port, NULL},
    {"DMLC_RANK", read_rank, NULL},
    {"DMLC_WORKER_ID", read_own_rank, NULL},
    {"DMLC_SERVER_ID", read_own_rank, NULL},
    {"DMLC_PS_VAN_TYPE", read_van, NULL},
    {"DMLC_GROUP_SIZE", read_group, NULL},
    {"PS_HEARTBEAT_INTERVAL", read_interval, NULL},
    {"PS_HEARTBEAT_TIMEOUT", read_timeout, NULL},
    {"PS_RESEND", read_resend, NULL},
    {"PS_DROP_MSG", read_drop, NULL},
    {"PS_VERBOSE", read_verbose, NULL},
    {"DMLC_TASK_ID", pass_over, NULL},
    {"DMLC_NUM_ATTEMPT", pass_over, NULL},
    {"DMLC_JOB_CLUSTER", pass_over, NULL},
    {"PS_RESEND_TIMEOUT", NULL,
     "what was not acknowledged is sent again when its link is back, not after "
     "a time"},
    {"DMLC_PS_WATER_MARK", NULL,
     "what waits to be sent is bounded by its receiver, not by a number of "
     "messages"},
    {"DMLC_ENABLE_RDMA", NULL, "there is no RDMA"},
    {"DMLC_ENABLE_UCX", NULL, "there is no UCX"},
    {"DMLC_TRACKER_URI", NULL, "there is no rabit, which all-reduces"},
    {"DMLC_TRACKER_PORT", NULL, "there is no rabit, which all-reduces"}};

enum { ROWS = sizeof kRows / sizeof *kRows };

size_t weir_tools_dmlc_names(size_t at, const char **out_name) {
  if (at < ROWS) *out_name = kRows[at].name;
  return ROWS;
}

/* ---- All together */

static weir_status need(const weir_tools_dmlc *d, const reading *r) {
  const char *missing = d->job == NULL       ? "DMLC_ROLE"
                        : r->servers == 0    ? "DMLC_NUM_SERVER"
                        : r->workers == 0    ? "DMLC_NUM_WORKER"
                        : d->root[0] == '\0' ? "DMLC_PS_ROOT_URI"
                        : d->root_port == 0  ? "DMLC_PS_ROOT_PORT"
                                             : NULL;
  if (missing == NULL) return WEIR_OK;
  return weir_fail(r->err, WEIR_W7082, NULL,
                   "--cluster dmlc: the environment has no %s", missing);
}

static weir_status settle_rank(weir_tools_dmlc *d, const reading *r) {
  bool server = strcmp(d->job, "ps") == 0;
  int64_t rank = r->rank >= 0 ? r->rank : r->own_rank;
  int64_t count = server ? r->servers : r->workers;
  if (strcmp(d->job, "chief") == 0) count = 1;
  d->ranked = rank >= 0;
  if (!d->ranked) return WEIR_OK;
  if (r->rank >= 0 && r->own_rank >= 0 && r->rank != r->own_rank)
    return weir_fail(
        r->err, WEIR_W7082, NULL,
        "DMLC_RANK=%" PRId64 " and %s=%" PRId64 " are not the same", r->rank,
        server ? "DMLC_SERVER_ID" : "DMLC_WORKER_ID", r->own_rank);
  if (rank >= count)
    return weir_fail(r->err, WEIR_W7082, NULL,
                     "there is no rank %" PRId64 ": the job has %" PRId64
                     " of this role, from 0",
                     rank, count);
  d->rank = (uint32_t)rank;
  return WEIR_OK;
}

/* A process is lost after five heartbeats, in weir always. */
static weir_status settle_heartbeat(weir_tools_dmlc *d, const reading *r) {
  const int64_t second = 1000000000;
  if (r->interval > 0 && r->timeout > 0 && r->timeout != 5 * r->interval)
    return weir_fail(r->err, WEIR_W7082, NULL,
                     "PS_HEARTBEAT_TIMEOUT=%" PRId64
                     ": a process is lost after five heartbeats, with "
                     "PS_HEARTBEAT_INTERVAL=%" PRId64 " after %" PRId64 " s",
                     r->timeout, r->interval, 5 * r->interval);
  d->heartbeat_ns =
      r->interval > 0 ? r->interval * second : r->timeout * second / 5;
  return WEIR_OK;
}

static weir_status settle(weir_tools_dmlc *d, const reading *r) {
  bool scheduler = d->job != NULL && strcmp(d->job, "chief") == 0;
  bool server = d->job != NULL && strcmp(d->job, "ps") == 0;
  WEIR_TRY(need(d, r));
  if (d->any_host && !scheduler) d->any_host = false; /* as ps-lite */
  if (!server) d->port = 0; /* its own is the scheduler's, or it has none */
  if (d->host[0] != '\0' && d->interface[0] != '\0')
    return weir_fail(r->err, WEIR_W7082, NULL,
                     "DMLC_NODE_HOST and DMLC_INTERFACE both say where this "
                     "process is; one is to go");
  snprintf(d->cluster, sizeof d->cluster, "ps=%" PRId64 ",worker=%" PRId64,
           r->servers, r->workers);
  WEIR_TRY(settle_rank(d, r));
  return settle_heartbeat(d, r);
}

weir_status weir_tools_dmlc_read(const char *(*look_up)(void *self,
                                                        const char *name),
                                 void *self, weir_tools_dmlc *out,
                                 weir_error *err) {
  reading r = {.out = out, .rank = -1, .own_rank = -1, .err = err};
  *out = (weir_tools_dmlc){.job = NULL};
  for (size_t i = 0; i < ROWS; i++) {
    r.name = kRows[i].name;
    r.text = look_up(self, r.name);
    if (r.text == NULL || r.text[0] == '\0') continue;
    if (kRows[i].read != NULL) {
      WEIR_TRY(kRows[i].read(&r));
      continue;
    }
    bool off = strncmp(r.name, "DMLC_ENABLE_", 12) == 0 &&
               strcmp(r.text, "0") == 0; /* that is what there is */
    if (!off) return refuse(&r, kRows[i].says);
  }
  return settle(out, &r);
}
