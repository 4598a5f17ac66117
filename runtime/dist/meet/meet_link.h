/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_MEET_LINK_H_
#define WEIR_DIST_MEET_LINK_H_

#include "runtime/dist/cluster/wires.h"
#include "runtime/dist/meet/meet.h"
#include "runtime/net/wire.h"

/* What both sides of a meeting have in common: their wires. */

/* The name of the scheduler on its links. */
extern const char weir_meet_job[];

/* Wires that carry control messages only; |calls->bulk| is filled in. |serves|:
 * this process is the scheduler. Errors: those of the transports, W6001. */
weir_status weir_meet_wires(const weir_env *env,
                            const weir_meet_options *options, bool serves,
                            weir_wires_calls *calls, weir_wires **out_wires,
                            weir_error *err);

/* Names a rank: "ps:0", "worker:3". */
void weir_meet_name(weir_ps_role role, uint32_t rank, char out[32]);

/* A line for |options->log|, if anybody listens. */
void weir_meet_say(const weir_meet_options *options, const char *text);

#endif
