/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_GPU_PEER_H_
#define WEIR_EXEC_GPU_PEER_H_

#include "runtime/exec/gpu/gpu_frame.h"

/* Values that go from one GPU's part to another's in one process, by a copy
 * between their memories.
 *
 * The two ends meet on the frame's channel, as all do; what goes over it is an
 * offer, the place of the value and not its bytes. Then the receiver's frame
 * puts the copy into a queue of its own, beside its part's work. Its tasks that
 * read the value are told at once and wait in their queue for the copy's event;
 * its sends, and the sender, are told when the copy has ended.
 *
 *   sender:   weir_gpu_peer_offer(task, value, done)  to be sent
 *             weir_gpu_peer_half(task)          the offer was taken
 *   receiver: weir_gpu_peer_offered(task)       to be received
 *             weir_gpu_peer_copy(task, value, bytes)
 *
 * A failed copy is the receiver's failure. */

/* Makes what |frame| needs to receive so; released with it. Errors: those of
 * the device, W6001. */
weir_status weir_gpu_peers_create(weir_frame *frame, weir_error *err);
void weir_gpu_peers_release(weir_frame *frame); /* waits for its copies */

/* |task|'s offer of |value|, in its GPU's memory, good until the task ends.
 * |done| is called, with |task|, when the copy and the sending have ended. */
const weir_gpu_offer *weir_gpu_peer_offer(weir_frame_task *task, void *value,
                                          void (*done)(weir_frame_task *task));

/* One of two ends of a send between GPUs, the sending's or the copy's; calls
 * |done| at the second. */
void weir_gpu_peer_half(weir_frame_task *task);

/* Where |task|, a receive, gets its offer. */
weir_gpu_offer *weir_gpu_peer_offered(weir_frame_task *task);

/* Copies what was offered to |value| and ends |task| and the sender's. */
void weir_gpu_peer_copy(weir_frame_task *task, void *value, size_t bytes);

/* Lets the work of |task| that is queued from here on start after the copies
 * that it reads. Errors: those of the device. */
weir_status weir_gpu_peers_wait(const weir_frame_task *task, weir_error *err);

#endif
