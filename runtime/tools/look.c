/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tools/look.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/quantity.h"

/* Looks at the tasks of a cluster: asks them, writes the answers. */

typedef struct look_call {
  const weir_tools_look *opts;
  weir_task_list list;
  weir_grpc_maker maker;
  weir_observe_row *rows;
} look_call;

/* A line for each round trip, as it comes; no line that fails is an error: the
 * sums at the end are written, too. */
static void pinged(void *self, uint32_t task, uint32_t number, int64_t rtt_ns) {
  const look_call *c = self;
  const weir_driver_task *t = &c->list.tasks[task];
  char line[WEIR_NET_ADDRESS_BYTES + 160], trip[WEIR_QUANTITY_TEXT];
  int n = snprintf(
      line, sizeof line, "%s:%u at %s: number %u, %s\n", t->job, t->index,
      t->address, number,
      rtt_ns >= 0 ? weir_quantity_print_time(rtt_ns, trip) : "no answer");
  if (n > 0) (void)c->opts->write(c->opts->self, line, (size_t)n);
}

static weir_status use_addresses(look_call *c, weir_error *err) {
  const weir_tools_look *o = c->opts;
  if (o->addresses != NULL && o->address_count != c->list.count)
    return weir_fail(err, WEIR_W0002, NULL,
                     "the cluster has %u tasks, and %zu addresses are given",
                     c->list.count, o->address_count);
  for (uint32_t i = 0; o->addresses != NULL && i < c->list.count; i++)
    c->list.tasks[i].address = o->addresses[i];
  for (uint32_t i = 0; i < c->list.count; i++)
    WEIR_TRY(weir_task_list_check(&c->list.tasks[i], err));
  return WEIR_OK;
}

/* The call as a whole fails with the first task that did. */
static weir_status sum_up(const look_call *c, weir_error *err) {
  uint32_t bad = 0;
  const weir_error *first = NULL;
  for (uint32_t i = 0; i < c->list.count; i++) {
    const weir_observe_row *r = &c->rows[i];
    bool lost = r->trips.lost > 0 && r->error.id[0] == '\0';
    if (r->error.id[0] == '\0' && !lost) continue;
    bad++;
    if (first == NULL && !lost) first = &r->error;
  }
  if (bad == 0) return WEIR_OK;
  const char *plural = c->list.count == 1 ? "" : "s";
  if (first != NULL && strcmp(first->id, "W7080") == 0) {
    weir_status s = weir_fail(err, WEIR_W7080, NULL, "%u of %u task%s: %.300s",
                              bad, c->list.count, plural, first->message);
    weir_hint(err, "--force ends it all the same; its driver fails");
    return s;
  }
  return weir_fail(err, WEIR_W7022, NULL,
                   "%u of %u task%s did not answer%s%.300s", bad, c->list.count,
                   plural, first != NULL ? ": " : "",
                   first != NULL ? first->message : "");
}

static weir_status write_all(const look_call *c, const weir_allocator *alloc,
                             weir_error *err) {
  weir_strbuf text;
  weir_look_text t = {c->opts, &c->list, c->rows, alloc};
  weir_strbuf_init(&text, alloc);
  weir_status s = c->opts->json ? weir_look_write_json(&t, &text, err)
                                : weir_look_write_text(&t, &text, err);
  weir_sv view = weir_strbuf_view(&text);
  if (s == WEIR_OK && !c->opts->write(c->opts->self, view.data, view.size))
    s = weir_fail(err, WEIR_W5009, NULL, "the table could not be written");
  weir_strbuf_release(&text);
  return s;
}

static weir_status look(look_call *c, weir_runtime *runtime, weir_error *err) {
  const weir_tools_look *o = c->opts;
  WEIR_TRY(weir_task_list_read(runtime, NULL, o->cluster, &c->list, err));
  WEIR_TRY(use_addresses(c, err));
  bool insecure = o->insecure || c->list.cluster->insecure;
  const weir_list_tls ask = {.insecure = insecure};
  const weir_net_tls *tls = NULL;
  WEIR_TRY(weir_task_list_tls(&c->list, &ask, &tls, err));
  WEIR_TRY(
      weir_grpc_maker_init(&c->maker, &runtime->env, NULL, NULL, NULL, err));
  c->rows =
      weir_alloc_array(runtime->env.alloc, c->list.count, sizeof *c->rows);
  if (c->rows == NULL && c->list.count > 0)
    return weir_fail_memory(err, c->list.count * sizeof *c->rows);
  bool lines = o->kind == WEIR_TOOLS_LOOK_PING && !o->json && !o->quiet;
  weir_observe_options options = {.transports = &c->maker.transports,
                                  .tasks = c->list.tasks,
                                  .task_count = c->list.count,
                                  .cluster_hash = c->list.hash,
                                  .insecure = insecure,
                                  .tls = tls,
                                  .wait_ns = o->wait_ns,
                                  .pings = o->pings,
                                  .interval_ns = o->interval_ns,
                                  .bandwidth_bytes = o->bandwidth_bytes,
                                  .stop = o->kind == WEIR_TOOLS_LOOK_STOP,
                                  .force = o->force,
                                  .pinged = lines ? pinged : NULL,
                                  .self = c};
  WEIR_TRY(weir_observe(&runtime->env, &options, c->rows, err));
  WEIR_TRY(write_all(c, runtime->env.alloc, err));
  return sum_up(c, err);
}

weir_status weir_tools_cluster_look(weir_runtime *runtime,
                                    const weir_tools_look *opts,
                                    weir_error *err) {
  look_call call = {.opts = opts};
  weir_status s = look(&call, runtime, err);
  weir_free(runtime->env.alloc, call.rows);
  weir_task_list_release(&call.list);
  return s;
}
