/* SPDX-License-Identifier: Apache-2.0
 *
 * The null channel: it has no other end. To write a channel, copy this file,
 * rename, and replace bodies. */
#include "runtime/exec/channel/channel_null.h"

#include "runtime/exec/channel/channel.h"

static void refuse(weir_channel_done *done) {
  weir_error err = WEIR_ERROR_INIT;
  weir_status s =
      weir_fail(&err, WEIR_W7001, NULL, "the null channel has no peers");
  done->fn(done->self, s, &err);
}

static void null_release(weir_channel *channel) {
  (void)channel;
}

static void null_send(weir_channel *channel, uint32_t edge, uint64_t step,
                      const void *src, size_t bytes, weir_channel_done *done) {
  (void)channel, (void)edge, (void)step, (void)src, (void)bytes;
  refuse(done);
}

static void null_send_error(weir_channel *channel, uint32_t edge, uint64_t step,
                            const weir_error *why) {
  (void)channel, (void)edge, (void)step, (void)why;
}

static void null_recv(weir_channel *channel, uint32_t edge, uint64_t step,
                      void *dst, size_t bytes, weir_channel_done *done) {
  (void)channel, (void)edge, (void)step, (void)dst, (void)bytes;
  refuse(done);
}

static void null_recv_pieces(weir_channel *channel, uint32_t edge,
                             uint64_t step, size_t bytes,
                             const weir_channel_sink *sink,
                             weir_channel_done *done) {
  (void)channel, (void)edge, (void)step, (void)bytes, (void)sink;
  refuse(done);
}

static void null_collective(weir_channel *channel, uint64_t step,
                            const weir_collective *part,
                            weir_channel_done *done) {
  (void)channel, (void)step, (void)part;
  refuse(done);
}

static void null_drop(weir_channel *channel, uint64_t step,
                      const weir_error *why) {
  (void)channel, (void)step, (void)why;
}

static void null_abort(weir_channel *channel, const weir_error *why) {
  (void)channel, (void)why;
}

static const weir_channel_vtable kNull = {
    .release = null_release,
    .send = null_send,
    .send_error = null_send_error,
    .recv = null_recv,
    .recv_pieces = null_recv_pieces,
    .collective = null_collective,
    .drop = null_drop,
    .abort = null_abort,
};

weir_channel *weir_channel_null(void) {
  static const weir_channel kChannel = {&kNull};
  return (weir_channel *)&kChannel; /* no method writes to it */
}
