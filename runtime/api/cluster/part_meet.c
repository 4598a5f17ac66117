/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/cluster/part_meet.h"

weir_status weir_part_meet_lead(weir_part_meet *meet, const weir_env *env,
                                const weir_meet_options *options,
                                weir_error *err) {
  weir_meet_options o = *options;
  o.book = meet->book;
  return weir_meet_host_create(env, &o, &meet->host, err);
}

weir_status weir_part_meet_knock(weir_part_meet *meet, const weir_env *env,
                                 const weir_meet_guest_options *options,
                                 pthread_mutex_t *lock, const bool *stopped,
                                 weir_error *err) {
  weir_meet_guest_options o = *options;
  weir_meet_guest *made = NULL;
  o.meet.book = meet->book;
  WEIR_TRY(weir_meet_guest_create(env, &o, &made, err));
  pthread_mutex_lock(lock);
  meet->guest = made;
  if (*stopped) weir_meet_guest_stop(made);
  pthread_mutex_unlock(lock);
  return WEIR_OK;
}

weir_status weir_part_meet_error(const weir_part_meet *meet, weir_error *err) {
  if (meet->guest == NULL) return WEIR_OK;
  return weir_meet_guest_error(meet->guest, err);
}

void weir_part_meet_end(weir_part_meet *meet) {
  weir_meet_guest_release(meet->guest);
  weir_meet_host_release(meet->host);
  weir_ps_book_release(meet->book);
  *meet = (weir_part_meet){0};
}
