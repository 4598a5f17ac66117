/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/channel/pump.h"

static void released(void *chunk) {
  weir_rendezvous_released(chunk);
}

weir_status weir_rendezvous_send_frame(const weir_wire_out *out,
                                       const weir_rendezvous_frame *frame,
                                       void (*on_released)(void *chunk)) {
  if (frame->control.size > 0)
    return out->control(out->self, frame->peer, frame->control.data,
                        frame->control.size);
  weir_net_piece pieces[] = {
      {frame->header, frame->header_bytes, NULL, NULL},
      {frame->payload.data, frame->payload.size, on_released, frame->chunk}};
  return out->bulk(out->self, frame->peer, pieces,
                   frame->chunk != NULL ? 2 : 1);
}

static bool send_next(weir_rendezvous *r, const weir_wire_out *out) {
  weir_rendezvous_frame frame;
  if (!weir_rendezvous_next_frame(r, &frame)) return false;
  if (weir_rendezvous_send_frame(out, &frame, released) == WEIR_OK) return true;
  weir_error err = WEIR_ERROR_INIT;
  weir_fail(&err, WEIR_W7001, NULL, "a frame could not be sent");
  if (frame.chunk != NULL) weir_rendezvous_released(frame.chunk);
  weir_rendezvous_break(r, frame.peer, &err);
  return true;
}

void weir_rendezvous_pump(weir_rendezvous *r, const weir_wire_out *out) {
  weir_rendezvous_end end;
  uint32_t peer;
  while (send_next(r, out)) {
  }
  while (weir_rendezvous_next_end(r, &end)) {
    weir_rendezvous_tell(&end);
    weir_rendezvous_give_back(r, &end);
    while (send_next(r, out)) {
    }
  }
  while (weir_rendezvous_next_broken(r, &peer))
    if (out->broken != NULL) out->broken(out->self, peer);
}
