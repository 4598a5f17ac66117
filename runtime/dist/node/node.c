/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads around a task's protocol.
 *
 * A post wakes its thread under the lock of the inbox. Otherwise the call could
 * be made, and the node released, before the poster comes to wake: release
 * takes the lock before it frees anything. A wake is never lost: it ends the
 * next poll if none waits (transport.h).
 *
 * One thread at a time is that of a lane, and who it is changes under the
 * inbox's lock: OWN, the node's; a GUEST; NOBODY, while the node's thread rests
 * and sleeps on |turn|. Invariant: with NOBODY the inbox is empty, or the
 * node's thread was called back and takes it before it polls: the wake of a
 * post may have ended the poll of a guest that has left. */
#include "runtime/dist/node/node.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "runtime/exec/futex.h"

enum { REST_NS = 1000000 };

typedef struct lane {
  weir_node *node;
  weir_net_class cls;
  weir_transport *transport;
  pthread_t thread;
  bool runs; /* |thread| is to be joined */
  pthread_mutex_t lock;
  weir_node_call *head, **tail; /* the inbox */
  bool closed;                  /* it takes no more: calls are told so */
  enum { OWN, NOBODY, GUEST } at;
  bool offered, recalled;
  bool waits;      /* its thread sleeps until the guest has left */
  unsigned guests; /* that ever came */
  atomic_uint turn, answers;
} lane;

struct weir_node {
  const weir_env *env;
  weir_node_machine machine;
  atomic_bool stopping;
  lane lanes[2];
};

/* An offer is taken or over. Under the lock. */
static void answer(lane *l) {
  l->offered = false;
  atomic_fetch_add(&l->answers, 1);
  weir_futex_wake(&l->answers, INT_MAX);
}

static weir_node_call *take_calls(lane *l, bool close) {
  pthread_mutex_lock(&l->lock);
  weir_node_call *list = l->head;
  l->head = NULL;
  l->tail = &l->head;
  l->closed = l->closed || close;
  if (close && l->offered) answer(l);
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

/* ---- Guests */

static void call_back(lane *l) {
  atomic_fetch_add(&l->turn, 1);
  weir_futex_wake(&l->turn, 1);
}

static bool must_go_on(const lane *l) {
  return l->recalled || l->head != NULL || atomic_load(&l->node->stopping);
}

/* Leaves the lane to guests, if one has offered to come, until none came for
 * REST_NS. Whether it did. */
static bool rest(lane *l) {
  pthread_mutex_lock(&l->lock);
  bool rests = l->offered && l->head == NULL;
  l->recalled = false;
  if (rests) l->at = NOBODY;
  if (l->offered) answer(l);
  for (bool on = rests; on;) {
    unsigned seen = atomic_load(&l->turn), guests = l->guests;
    bool guest = l->at == GUEST;
    l->waits = guest;
    bool sleeps = guest || !must_go_on(l);
    pthread_mutex_unlock(&l->lock);
    if (sleeps) weir_futex_wait(&l->turn, seen, guest ? -1 : REST_NS);
    pthread_mutex_lock(&l->lock);
    on = l->at == GUEST || (!must_go_on(l) && (guest || guests != l->guests));
  }
  l->at = OWN;
  l->waits = false;
  pthread_mutex_unlock(&l->lock);
  return rests;
}

/* Waits for the answer to an offer, which comes soon. */
static bool come(lane *l) {
  pthread_mutex_lock(&l->lock);
  while (l->offered) {
    unsigned seen = atomic_load(&l->answers);
    pthread_mutex_unlock(&l->lock);
    weir_futex_wait(&l->answers, seen, -1);
    pthread_mutex_lock(&l->lock);
  }
  bool free = l->at == NOBODY && !must_go_on(l);
  if (free) {
    l->at = GUEST;
    l->guests++;
  }
  pthread_mutex_unlock(&l->lock);
  return free;
}

static void leave(lane *l, bool busy) {
  pthread_mutex_lock(&l->lock);
  l->at = NOBODY;
  l->recalled = busy;
  bool back = l->waits || must_go_on(l);
  pthread_mutex_unlock(&l->lock);
  if (back) call_back(l);
}

bool weir_node_stand_in(weir_node *node, weir_net_class cls,
                        weir_node_call *call,
                        weir_node_over (*over)(void *self), void *self) {
  lane *l = &node->lanes[cls];
  weir_node_over state;
  if (!come(l)) return false;
  call->fn(call->self, true);
  int64_t deadline_ns = step(l);
  while ((state = over(self)) == WEIR_NODE_GOES_ON &&
         !atomic_load(&node->stopping)) {
    poll_once(l, deadline_ns);
    make_calls(take_calls(l, false), true);
    deadline_ns = step(l);
  }
  leave(l, state == WEIR_NODE_OVER_BUSY);
  return true;
}

void weir_node_offer(weir_node *node, weir_net_class cls) {
  lane *l = &node->lanes[cls];
  pthread_mutex_lock(&l->lock);
  bool tell = l->at == OWN && !l->offered && !l->closed && l->head == NULL;
  l->offered |= tell;
  if (tell) l->transport->vt->wake(l->transport);
  pthread_mutex_unlock(&l->lock);
}

/* ---- The thread */

static void *run(void *self) {
  lane *l = self;
  int64_t deadline_ns = step(l);
  for (;;) {
    bool rested = rest(l);
    bool last = atomic_load(&l->node->stopping);
    if (!last && !rested) poll_once(l, deadline_ns);
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
    if (l->at == NOBODY) call_back(l);
    if (l->offered) answer(l); /* its thread has work */
  }
  pthread_mutex_unlock(&l->lock);
  if (closed) call->fn(call->self, false);
}

void weir_node_stop(weir_node *node) {
  atomic_store(&node->stopping, true);
  for (int i = 0; i < 2; i++)
    if (node->lanes[i].transport != NULL)
      node->lanes[i].transport->vt->wake(node->lanes[i].transport);
  for (int i = 0; i < 2; i++) call_back(&node->lanes[i]);
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
