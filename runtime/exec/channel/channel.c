/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/channel/channel.h"

void weir_channel_release(weir_channel *channel) {
  if (channel != NULL) channel->vt->release(channel);
}
