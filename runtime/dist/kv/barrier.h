/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_KV_BARRIER_H_
#define WEIR_DIST_KV_BARRIER_H_

#include "runtime/dist/kv/keeper_internal.h"

/* The barriers of a server; barrier.c tells how they count. */

/* ENTER has come. */
void weir_kv_barrier_enter(weir_kv_keeper *s, uint32_t member,
                           const weir_kv_message *m);
/* |member| is another process now: what the older one entered is void. */
void weir_kv_barrier_forget(weir_kv_keeper *s, uint32_t member);
/* |member| is lost or has left: nobody waits for it any longer. */
void weir_kv_barrier_break(weir_kv_keeper *s, uint32_t member);
/* Frees all rounds. */
void weir_kv_barrier_release(weir_kv_keeper *s);

#endif
