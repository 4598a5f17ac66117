/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "tests/bench/gpu/bare.h"

/* Copies within the device, and between it and the host, as large as the random
 * data. */

typedef struct copies {
  bench *b;
  weir_device_buffer x, y;
  void *host;
} copies;

static weir_status within(void *self, weir_error *err) {
  copies *c = self;
  weir_device *d = c->b->device;
  return d->vt->copy(d, c->b->queue, (weir_device_place){&c->y, 0},
                     (weir_device_place){&c->x, 0}, c->x.bytes, err);
}

static weir_status in(void *self, weir_error *err) {
  copies *c = self;
  weir_device *d = c->b->device;
  return d->vt->copy_in(d, c->b->queue, (weir_device_place){&c->x, 0}, c->host,
                        c->x.bytes, err);
}

static weir_status in_bare(void *self, weir_error *err) {
  copies *c = self;
  (void)err;
  bare_copy_in(c->b, c->x.handle, c->host, c->x.bytes);
  return WEIR_OK;
}

static weir_status out(void *self, weir_error *err) {
  copies *c = self;
  weir_device *d = c->b->device;
  return d->vt->copy_out(d, c->b->queue, c->host, (weir_device_place){&c->x, 0},
                         c->x.bytes, err);
}

static weir_status out_bare(void *self, weir_error *err) {
  copies *c = self;
  (void)err;
  bare_copy_out(c->b, c->host, c->x.handle, c->x.bytes);
  return WEIR_OK;
}

/* |bytes|: that are moved by one run. */
static double measure(bench *b, const char *name, const bench_fn fns[2],
                      copies *c, double bytes) {
  double seconds[2];
  bench_time(b, fns, c, seconds);
  bench_row row = {.s = seconds[0],
                   .bare_s = seconds[1],
                   .work = bytes,
                   .unit = "GB/s",
                   .scale = 1e9,
                   .share = seconds[1] / seconds[0]};
  snprintf(row.name, sizeof row.name, "%s", name);
  bench_add(b, &row);
  return bytes / seconds[0];
}

void bench_memory(bench *b) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = b->device;
  copies c = {.b = b,
              .x = bench_buffer(b, b->random_bytes),
              .y = bench_buffer(b, b->random_bytes)};
  double bytes = (double)b->random_bytes;
  bench_ok(d->vt->host_alloc(d, b->random_bytes, &c.host, &err), &err);
  memcpy(c.host, b->random, b->random_bytes);
  b->copy_rate = measure(b, "copy within the device",
                         (const bench_fn[]){within, NULL}, &c, 2 * bytes);
  measure(b, "copy to the device", (const bench_fn[]){in, in_bare}, &c, bytes);
  measure(b, "copy to the host", (const bench_fn[]){out, out_bare}, &c, bytes);
  d->vt->host_free(d, c.host);
  d->vt->free(d, &c.x);
  d->vt->free(d, &c.y);
}
