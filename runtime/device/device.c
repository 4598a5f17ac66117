/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/device.h"

#include "runtime/base/size.h"

void weir_device_release(weir_device *device) {
  if (device != NULL) device->vt->release(device);
}

weir_status weir_device_check_span(weir_device_place place, size_t bytes,
                                   weir_error *err) {
  size_t end;
  if (weir_size_add(place.offset, bytes, &end) && end <= place.buffer->bytes)
    return WEIR_OK;
  return weir_fail(err, WEIR_W9001, NULL,
                   "copy of %zu bytes at %zu in a buffer of %zu", bytes,
                   place.offset, place.buffer->bytes);
}

weir_status weir_device_check_peer(const weir_device *device,
                                   const weir_device *peer, weir_error *err) {
  if (device->vt == peer->vt) return WEIR_OK;
  char mine[128], theirs[128];
  return weir_fail(err, WEIR_W9001, NULL,
                   "%s cannot copy from %s: a device of another kind",
                   weir_device_name_print(&device->name, mine, sizeof mine),
                   weir_device_name_print(&peer->name, theirs, sizeof theirs));
}

weir_status weir_device_no_body(weir_device *device, const char *name,
                                const weir_device_body **out_body,
                                weir_error *err) {
  char mine[128];
  *out_body = NULL;
  return weir_fail(err, WEIR_W9001, NULL, "%s has no bodies, so no %s",
                   weir_device_name_print(&device->name, mine, sizeof mine),
                   name);
}

weir_status weir_device_no_launch(weir_device *device, weir_queue *queue,
                                  const weir_device_body *body,
                                  const weir_device_grid *grid,
                                  const void *args, size_t bytes,
                                  weir_error *err) {
  char mine[128];
  (void)queue, (void)body, (void)grid, (void)args, (void)bytes;
  return weir_fail(err, WEIR_W9001, NULL, "%s has no bodies to launch",
                   weir_device_name_print(&device->name, mine, sizeof mine));
}
