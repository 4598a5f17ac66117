/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections within one process, and the events of their two sides. */
#include "runtime/net/local_sides.h"

weir_local_side *weir_local_find(const weir_local *t, weir_connection id) {
  size_t low = 0, high = t->sides.count;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (t->sides.items[mid]->id < id) {
      low = mid + 1;
    } else {
      high = mid;
    }
  }
  bool found = low < t->sides.count && t->sides.items[low]->id == id;
  return found ? t->sides.items[low] : NULL;
}

void weir_local_ring_push(weir_local_side *s) {
  weir_local *t = s->owner;
  if (s->in_ring) return;
  if (t->ring == NULL) t->ring_tail = &t->ring;
  s->next = NULL;
  s->in_ring = true;
  *t->ring_tail = s;
  t->ring_tail = &s->next;
}

weir_local_side *weir_local_ring_pop(weir_local *t) {
  weir_local_side *s = t->ring;
  if (s == NULL) return NULL;
  t->ring = s->next;
  s->in_ring = false;
  return s;
}

static void ring_remove(weir_local_side *s) {
  weir_local *t = s->owner;
  weir_local_side **at = &t->ring;
  if (!s->in_ring) return;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  if (t->ring_tail == &s->next) t->ring_tail = at;
  s->in_ring = false;
}

void weir_local_tell(weir_local_side *s) {
  s->owner->events++;
  weir_local_ring_push(s);
  pthread_cond_broadcast(&s->owner->changed);
}

void weir_local_finish(weir_local_side *s, weir_close_reason why,
                       const char *text) {
  if (s->owner == NULL || s->ended) return;
  s->ended = true;
  s->why = why;
  s->why_text = text;
  weir_local_tell(s);
}

weir_net_parcel *weir_local_take(weir_local_side *s) {
  weir_net_parcel *parcel = weir_net_parcels_pop(&s->arrived);
  ((weir_local *)parcel->owner)->loose++;
  s->owner->events--;
  s->count--;
  s->queue_bytes -= parcel->size;
  return parcel;
}

void weir_local_untake(weir_local_side *s, weir_net_parcel *parcel) {
  weir_net_parcels_push_front(&s->arrived, parcel);
  s->count++;
  s->queue_bytes += parcel->size;
  s->owner->events++;
  weir_local_ring_push(s);
  weir_local_settle(parcel->owner, 1);
}

weir_net_parcel *weir_local_take_all(weir_local_side *s) {
  weir_net_parcel *list = s->arrived.head;
  if (list == NULL) return NULL;
  ((weir_local *)list->owner)->loose += s->count;
  s->owner->events -= s->count;
  s->arrived.head = NULL;
  s->count = s->queue_bytes = 0;
  return list;
}

void weir_local_settle(weir_local *sender, size_t count) {
  if (count == 0) return;
  sender->loose -= count;
  if (sender->loose == 0) pthread_cond_broadcast(&sender->changed);
}

void weir_local_let_go(weir_net_hub *hub, weir_net_parcel *list) {
  if (list == NULL) return;
  weir_local *sender = list->owner;
  size_t count = 0;
  for (const weir_net_parcel *p = list; p != NULL; p = p->next) count++;
  pthread_mutex_unlock(&hub->lock);
  weir_net_parcel_free_all(list);
  pthread_mutex_lock(&hub->lock);
  weir_local_settle(sender, count);
}

weir_net_parcel *weir_local_part(weir_local_side *s) {
  weir_local *t = s->owner;
  size_t i = 0;
  weir_net_parcel *list = weir_local_take_all(s);
  ring_remove(s);
  t->events -= (size_t)s->tell_connected + s->ended;
  while (t->sides.items[i] != s) i++;
  memmove(&t->sides.items[i], &t->sides.items[i + 1],
          (--t->sides.count - i) * sizeof(weir_local_side *));
  s->owner = NULL;
  if (weir_local_other(s)->owner == NULL)
    weir_free(t->hub->env->alloc, s->both);
  return list;
}
