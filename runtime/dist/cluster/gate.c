/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/cluster/gate.h"

void weir_dist_gate_init(weir_dist_gate *g) {
  *g = (weir_dist_gate){.inside = 0};
  pthread_mutex_init(&g->lock, NULL);
  pthread_cond_init(&g->changed, NULL);
}

void weir_dist_gate_release(weir_dist_gate *g) {
  pthread_cond_destroy(&g->changed);
  pthread_mutex_destroy(&g->lock);
}

void weir_dist_gate_enter(weir_dist_gate *g, bool alone) {
  pthread_mutex_lock(&g->lock);
  if (alone) {
    g->wanted++;
    while (g->alone || g->inside > 0) pthread_cond_wait(&g->changed, &g->lock);
    g->wanted--;
    g->alone = true;
  } else {
    while (g->alone || g->wanted > 0) pthread_cond_wait(&g->changed, &g->lock);
    g->inside++;
  }
  pthread_mutex_unlock(&g->lock);
}

void weir_dist_gate_leave(weir_dist_gate *g, bool alone) {
  pthread_mutex_lock(&g->lock);
  if (alone)
    g->alone = false;
  else
    g->inside--;
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->lock);
}
