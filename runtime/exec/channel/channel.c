/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/channel/channel.h"

#include "runtime/base/map.h"

uint64_t weir_channel_turn(uint64_t step, uint64_t turns) {
  return weir_hash_bytes(&turns, sizeof turns, step) | (uint64_t)1 << 63;
}

void weir_channel_release(weir_channel *channel) {
  if (channel != NULL) channel->vt->release(channel);
}
