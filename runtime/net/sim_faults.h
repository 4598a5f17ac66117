/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_SIM_FAULTS_H_
#define WEIR_NET_SIM_FAULTS_H_

#include "runtime/net/sim.h"

/* Faults that a test causes, beside those that happen by rates, and counts of
 * both. */

/* Cuts the link |from| -> |to|, with |both| the other way too, until it is
 * healed. Errors: W6001. */
weir_status weir_net_sim_cut(weir_net_sim *sim, uint32_t from, uint32_t to,
                             bool both, weir_error *err);
/* Heals it. Frames held back arrive. Errors: W6001. */
weir_status weir_net_sim_heal(weir_net_sim *sim, uint32_t from, uint32_t to,
                              bool both, weir_error *err);
/* Each connection |from| -> |to| sends that many bytes a second from now on; 0:
 * as the options say. Errors: W6001. */
weir_status weir_net_sim_slow(weir_net_sim *sim, uint32_t from, uint32_t to,
                              uint64_t bytes_per_second, weir_error *err);
/* Stops a process, or lets it go on, as SIGSTOP and SIGCONT do. W6001. */
weir_status weir_net_sim_pause(weir_net_sim *sim, uint32_t process, bool paused,
                               weir_error *err);
/* Ends a process as SIGKILL does: its transports do nothing more, and are to be
 * released: |released| of their unsent frames is called then. |silent|: its
 * machine is gone, no peer is told. Errors: W6001. */
weir_status weir_net_sim_kill(weir_net_sim *sim, uint32_t process, bool silent,
                              weir_error *err);

typedef enum weir_net_fault {
  WEIR_NET_FAULT_LOSS,        /* frames lost */
  WEIR_NET_FAULT_LATE_RESET,  /* frames that arrived before a reset */
  WEIR_NET_FAULT_STALL,       /* frames held up */
  WEIR_NET_FAULT_OVERTAKE,    /* frames overtaken by one sent later */
  WEIR_NET_FAULT_UNREACHABLE, /* attempts to connect that failed */
  WEIR_NET_FAULT_HALF_OPEN,   /* connections that the listener alone had */
  WEIR_NET_FAULT_CUT,         /* links cut both ways */
  WEIR_NET_FAULT_ONE_WAY,     /* links cut one way */
  WEIR_NET_FAULT_HELD,        /* frames that a cut made late */
  WEIR_NET_FAULT_GIVE_UP,     /* sides that gave up for a cut */
  WEIR_NET_FAULT_SLOW,        /* frames over a slow link */
  WEIR_NET_FAULT_QUEUE_FULL,  /* sends refused for it */
  WEIR_NET_FAULT_PAUSE,
  WEIR_NET_FAULT_KILL,
  WEIR_NET_FAULT_SILENT_KILL,
  WEIR_NET_FAULT_COUNT
} weir_net_fault;

/* How often it has happened so far. */
uint64_t weir_net_sim_count(const weir_net_sim *sim, weir_net_fault fault);
/* "loss", "late_reset", ... */
const char *weir_net_fault_name(weir_net_fault fault);

#endif
