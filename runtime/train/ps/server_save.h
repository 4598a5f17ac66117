/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_SAVE_H_
#define WEIR_TRAIN_PS_SERVER_SAVE_H_

#include "runtime/train/ps/server_host_internal.h"

/* Calls of the machine: saves, epochs, seals. */

weir_status weir_ps_host_save_init(weir_ps_host *h, weir_error *err);
void weir_ps_host_save_release(weir_ps_host *h);
void weir_ps_host_save(void *self, const weir_ps_state *state);
void weir_ps_host_keep(void *self, uint64_t epoch, uint64_t chief);
void weir_ps_host_seal(void *self, uint64_t generation);

#endif
