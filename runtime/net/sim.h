/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_SIM_H_
#define WEIR_NET_SIM_H_

#include "runtime/net/transport.h"

/* A simulated network: one thread, a clock that it moves itself, a seed.
 *
 *   weir_net_sim_create(env, seed, &options, &sim, err);
 *   weir_net_sim_transport(sim, 0, &handler, &control, &t, err);
 *   ... each process is a number; it listens at "sim:0:PORT" ...
 *   while (busy) weir_net_sim_step(sim, next_timer_ns, &process, err);
 *
 * A step moves the clock to the next event and reports it to its owner, as that
 * transport's poll would; nothing else moves the clock but a poll with a
 * deadline. The same seed and the same calls give the same run.
 *
 * Faults are those that a stream of gRPC over TCP can show:
 * - Frames of one connection never change their order, are never doubled or
 *   altered, and none is missing between two that arrive: TCP numbers bytes.
 * - So a lost frame ends its connection: both sides see RESET, each when it
 *   notices, and frames sent behind it are lost too. A packet that is lost and
 *   sent again is a stall: a frame, and all behind it, comes later.
 * - Frames of different connections overtake each other.
 * - A frame arrives, its connection is reset before the sender knows: a sender
 *   that sends again makes a duplicate. No other duplicates exist.
 * - A cut link holds frames, one way or both; nobody is told. Healed, they all
 *   arrive, unless a side gave up meanwhile (RESET for it at once, for the
 * other when it is reachable). An attempt to connect needs both ways.
 * - A half-open connection: the listener has it, the dialler gave up.
 * - A paused process sees nothing; its peers send until the window and then
 *   their queue is full. A killed one resets its connections; a silent kill
 *   (the machine is gone) tells no one until the process has a new transport.
 * Not simulated: altered bytes (a checksum of the rooms above is tested for
 * itself), clocks that differ, a peer that breaks the protocol. */

typedef struct weir_net_sim weir_net_sim;

/* Rates are in millionths, of frames unless it says something else. */
typedef struct weir_net_sim_options {
  int64_t delay_min_ns, delay_max_ns; /* of a link; both 0: 100 us to 1 ms */
  uint64_t bytes_per_second;          /* of a connection; 0: no limit */
  size_t window_bytes;                /* under way in a connection; 0: 1 MiB */
  uint32_t loss_ppm;                  /* lost; ends the connection */
  uint32_t late_reset_ppm;  /* arrives, then the connection is reset */
  uint32_t stall_ppm;       /* comes up to |stall_ns| later */
  int64_t stall_ns;         /* 0: 100 ms */
  uint32_t unreachable_ppm; /* of attempts to connect: fail */
  uint32_t give_up_ppm;     /* of sides of cut connections: see RESET at once */
  int64_t notice_ns;        /* a reset is seen within that; 0: 200 ms */
} weir_net_sim_options;

/* A network without processes. Errors: W6001. */
weir_status weir_net_sim_create(const weir_env *env, uint64_t seed,
                                const weir_net_sim_options *options,
                                weir_net_sim **out_sim, weir_error *err);
/* After its transports. NULL-safe. */
void weir_net_sim_release(weir_net_sim *sim);

/* The env given, with the simulator's clock. Begins at 1 s. */
const weir_env *weir_net_sim_env(const weir_net_sim *sim);

/* A transport of process |process|, a small number. The first one after a
 * kill starts the process again. Errors: W6001. */
weir_status weir_net_sim_transport(weir_net_sim *sim, uint32_t process,
                                   const weir_transport_handler *handler,
                                   const weir_transport_options *options,
                                   weir_transport **out_transport,
                                   weir_error *err);

/* The time of the next event, perhaps in the past; INT64_MAX: none. */
int64_t weir_net_sim_next(const weir_net_sim *sim);

/* Moves the clock to the next event and reports it, to |*out_process|; if there
 * is none until |limit_ns|, moves it there (unless that is INT64_MAX):
 * |*out_process| is -1. Errors: W6001, then the event is still to come. */
weir_status weir_net_sim_step(weir_net_sim *sim, int64_t limit_ns,
                              int64_t *out_process, weir_error *err);

#endif
