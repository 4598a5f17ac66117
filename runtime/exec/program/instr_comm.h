/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_INSTR_COMM_H_
#define WEIR_EXEC_INSTR_COMM_H_

#include "runtime/exec/program/recv_pieces.h"
#include "runtime/exec/run/frame.h"

/* Instructions that send, receive and reduce. */

/* Starts an async task; it ends by weir_frame_task_end. */
void weir_comm_start(weir_frame_task *task);

/* Tells the other end that |task| will not be started. */
void weir_comm_refuse(weir_frame_task *task, const weir_error *why);

/* SEND (in[0]), RECV (out[0]): one edge of |channel|; NULL: with
 * |between_tasks| the channel that the frame was given, else the frame's own,
 * which joins the parts of one run. Without bytes they are tokens and have no
 * operand. */
weir_status weir_instr_send(weir_program_builder *builder,
                            weir_channel *channel, bool between_tasks,
                            uint32_t edge, size_t bytes, weir_instr_spec *spec);

/* See weir_instr_send. */
weir_status weir_instr_recv(weir_program_builder *builder,
                            weir_channel *channel, bool between_tasks,
                            uint32_t edge, size_t bytes, weir_instr_spec *spec);

/* Lets |spec|, a RECV between tasks at the top of a program, compute with what
 * it receives: in (without the input that comes) and out of |spec| are then the
 * kernel's. |take| lives as long as the program. */
void weir_instr_recv_pieces(weir_instr_spec *spec, const weir_take *take);

/* Makes |spec|, a SEND or RECV of bytes over the frame's own channel, one
 * between parts of GPUs: the value is in the GPU's memory, and goes to the
 * other one's by a copy (gpu_peer.h). Both ends are to be so. */
void weir_instr_direct(weir_instr_spec *spec);

/* Whether |spec| is a RECV that is so. */
bool weir_instr_comm_arrives(const weir_instr_spec *spec);

/* COLLECTIVE: in[0] to out[0]; src and dst of |part| are set by each run.
 * |channel| and |between_tasks| as above. */
weir_status weir_instr_collective(weir_program_builder *builder,
                                  weir_channel *channel, bool between_tasks,
                                  const weir_collective *part,
                                  weir_instr_spec *spec);

/* The group of a COLLECTIVE; of other kinds WEIR_NO_INDEX. */
uint32_t weir_instr_comm_group(const weir_instr_spec *spec);

#endif
