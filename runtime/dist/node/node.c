/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads around a task's protocol.
 *
 * A post wakes its thread under the lock of the inbox. Otherwise the call could
 * be made, and the node released, before the poster comes to wake: release
 * takes the lock before it frees anything. A wake is never lost: it ends the
 * next poll if none waits (transport.h). */
#include "runtime/dist/node/node.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

typedef struct lane {
  weir_node *node;
  weir_net_class cls;
  weir_transport *transport;
  pthread_t thread;
  bool runs; /* |thread| is to be joined */
  pthread_mutex_t lock;
  weir_node_call *head, **tail; /* the inbox */
  bool closed;                  /* it takes no more: calls are told so */
} lane;

struct weir_node {
  const weir_env *env;
  weir_node_machine machine;
  atomic_bool stopping;
  lane lanes[2];
};

static weir_node_call *take_calls(lane *l, bool close) {
  pthread_mutex_lock(&l->lock);
  weir_node_call *list = l->head;
  l->head = NULL;
  l->tail = &l->head;
  l->closed = l->closed || close;
  pthread_mutex_unlock(&l->lock);
  return list;
}

static void make_calls(weir_node_call *list, bool runs) {
  while (list != NULL) {
    weir_node_call *next = list->next; /* |fn| may free it */
    list->fn(list->self, runs);
    list = next;
  }
}

static int64_t step(lane *l) {
  const weir_node *node = l->node;
  const weir_clock *clock = node->env->clock;
  if (node->machine.step[l->cls] == NULL) return INT64_MAX;
  return node->machine.step[l->cls](node->machine.self,
                                    clock->now_ns(clock->self));
}

static void poll_once(lane *l, int64_t deadline_ns) {
  const weir_node_machine *machine = &l->node->machine;
  weir_error err = WEIR_ERROR_INIT;
  if (l->transport->vt->poll(l->transport, deadline_ns, &err) == WEIR_OK)
    return;
  if (machine->failed == NULL || !machine->failed(machine->self, l->cls, &err))
    weir_node_stop(l->node);
}

static void *run(void *self) {
  lane *l = self;
  int64_t deadline_ns = step(l);
  for (;;) {
    bool last = atomic_load(&l->node->stopping);
    if (!last) poll_once(l, deadline_ns);
    make_calls(take_calls(l, last), true);
    if (last) return NULL;
    deadline_ns = step(l);
  }
}

void weir_node_post(weir_node *node, weir_net_class cls, weir_node_call *call) {
  lane *l = &node->lanes[cls];
  assert(l->transport != NULL);
  pthread_mutex_lock(&l->lock);
  bool closed = l->closed;
  if (!closed) {
    bool first = l->head == NULL;
    call->next = NULL;
    *l->tail = call;
    l->tail = &call->next;
    if (first) l->transport->vt->wake(l->transport);
  }
  pthread_mutex_unlock(&l->lock);
  if (closed) call->fn(call->self, false);
}

void weir_node_stop(weir_node *node) {
  atomic_store(&node->stopping, true);
  for (int i = 0; i < 2; i++)
    if (node->lanes[i].transport != NULL)
      node->lanes[i].transport->vt->wake(node->lanes[i].transport);
}

void weir_node_join(weir_node *node) {
  for (int i = 0; i < 2; i++) {
    lane *l = &node->lanes[i];
    if (!l->runs) continue;
    assert(!pthread_equal(pthread_self(), l->thread));
    pthread_join(l->thread, NULL);
    l->runs = false;
  }
}

weir_status weir_node_start(weir_node *node, weir_error *err) {
  static const char *const kNames[] = {"weir-control", "weir-bulk"};
  for (int i = 0; i < 2; i++) {
    lane *l = &node->lanes[i];
    if (l->transport == NULL) continue;
    if (pthread_create(&l->thread, NULL, run, l) != 0) {
      weir_node_stop(node);
      weir_node_join(node);
      return weir_fail(err, WEIR_W6003, NULL, "the system refused a thread");
    }
    l->runs = true;
    pthread_setname_np(l->thread, kNames[i]);
  }
  return WEIR_OK;
}

weir_status weir_node_create(const weir_env *env, weir_transport *control,
                             weir_transport *bulk,
                             const weir_node_machine *machine,
                             weir_node **out_node, weir_error *err) {
  *out_node = NULL;
  weir_node *node = weir_alloc_array(env->alloc, 1, sizeof *node);
  if (node == NULL) return weir_fail_memory(err, sizeof *node);
  node->env = env;
  node->machine = *machine;
  atomic_init(&node->stopping, false);
  for (int i = 0; i < 2; i++) {
    lane *l = &node->lanes[i];
    l->node = node;
    l->cls = (weir_net_class)i;
    l->transport = i == WEIR_NET_CONTROL ? control : bulk;
    l->tail = &l->head;
    pthread_mutex_init(&l->lock, NULL);
  }
  *out_node = node;
  return WEIR_OK;
}

void weir_node_release(weir_node *node) {
  if (node == NULL) return;
  weir_node_stop(node);
  weir_node_join(node);
  for (int i = 0; i < 2; i++)
    make_calls(take_calls(&node->lanes[i], true), false);
  for (int i = 0; i < 2; i++) {
    weir_transport_release(node->lanes[i].transport);
    pthread_mutex_destroy(&node->lanes[i].lock);
  }
  weir_free(node->env->alloc, node);
}
