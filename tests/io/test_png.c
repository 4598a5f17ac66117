/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/png.h"

#include "runtime/io/inflate.h"
#include "tests/io/io_check.h"

/* The pictures are those of data/make_png.py: sample c of pixel (y, x) is
 * (20 y + 7 x + 50 c) mod (most + 1). */

static weir_status read_png(const weir_allocator *alloc, weir_bytes bytes,
                            weir_tensor **out_tensor, weir_error *err) {
  return weir_png_read(alloc, bytes, "x.png", out_tensor, err);
}

static weir_tensor *load(const char *name) {
  io_bytes b = io_fixture(name);
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  assert_true(weir_png_is((weir_bytes){b.data, b.size}));
  assert_ok(
      read_png(weir_allocator_system(), (weir_bytes){b.data, b.size}, &t, &err),
      &err);
  return t;
}

/* The picture |name| has |c| channels of samples 0 to |most|, spread over 0 to
 * 255. */
static void holds(const char *name, int64_t h, int64_t w, int64_t c, int most) {
  double want[1024];
  int i = 0;
  for (int64_t y = 0; y < h; y++)
    for (int64_t x = 0; x < w; x++)
      for (int64_t k = 0; k < c; k++, i++)
        want[i] = (double)((20 * y + 7 * x + 50 * k) % (most + 1) * 255 / most);
  io_holds(load(name), WEIR_U8, 3, (int64_t[]){h, w, c}, want);
}

static void reads_every_kind(void **state) {
  (void)state;
  holds("gray.png", 3, 5, 1, 255);
  holds("gray_alpha.png", 3, 5, 2, 255);
  holds("rgb.png", 3, 5, 3, 255);
  holds("rgba.png", 3, 5, 4, 255);
  holds("rgb_interlaced.png", 9, 10, 3, 255);
  holds("gray1.png", 3, 5, 1, 1);
  holds("gray4.png", 3, 5, 1, 15);
  holds("chunks.png", 3, 5, 1, 255);
  /* Rounded: 128 / 257 is 0.498, 129 / 257 is 0.502. */
  io_holds(load("gray16.png"), WEIR_U8, 3, (int64_t[]){1, 5, 1},
           (double[]){0, 0, 1, 1, 255});
}

static void palettes_and_transparent_colours(void **state) {
  (void)state;
  static const double kColours[4][4] = {
      {255, 0, 0, 0}, {0, 255, 0, 128}, {0, 0, 255, 255}, {9, 8, 7, 255}};
  double rgb[45], rgba[60], gray[30];
  for (int i = 0; i < 15; i++) {
    int v = 20 * (i / 5) + 7 * (i % 5);
    memcpy(rgb + 3 * i, kColours[v % 4], 3 * sizeof *rgb);
    memcpy(rgba + 4 * i, kColours[v % 4], 4 * sizeof *rgba);
    gray[2 * i] = v;
    gray[2 * i + 1] = v == 27 ? 0 : 255;
  }
  io_holds(load("palette2.png"), WEIR_U8, 3, (int64_t[]){3, 5, 3}, rgb);
  io_holds(load("palette_clear.png"), WEIR_U8, 3, (int64_t[]){3, 5, 4}, rgba);
  io_holds(load("gray_clear.png"), WEIR_U8, 3, (int64_t[]){3, 5, 2}, gray);
}

static void cuts_and_tails(void **state) {
  (void)state;
  static const char *const kNames[] = {"gray.png", "rgb_interlaced.png",
                                       "palette_clear.png", "chunks.png"};
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; i++) {
    io_bytes b = io_fixture(kNames[i]);
    io_no_cut_is_read(read_png, &b);
    io_no_tail_is_read(read_png, &b, "W4017", "1 bytes follow the picture");
    io_sweep(read_png, &b);
  }
}

/* Sets the checksum of the first chunk, the header. */
static void sign(io_bytes *b) {
  uint32_t crc = weir_crc32((weir_bytes){b->data + 12, 17});
  for (int i = 0; i < 4; i++) b->data[29 + i] = (uint8_t)(crc >> (24 - 8 * i));
}

static void big_endian(uint8_t *to, uint32_t v) {
  for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void bad_headers(void **state) {
  (void)state;
  io_bytes good = io_fixture("gray.png"), b = good;
  b.data[0] = 'x';
  io_refuses(read_png, &b, "W4017", "PNG");
  b = good;
  b.data[29] ^= 1;
  io_refuses(read_png, &b, "W4017", "CRC error");
  const uint32_t sides[][2] = {{0, 3}, {65536, 1}, {1, 65536}, {0x80000000, 1}};
  for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
    b = good;
    big_endian(b.data + 16, sides[i][0]);
    big_endian(b.data + 20, sides[i][1]);
    sign(&b);
    io_refuses(read_png, &b, "W4017", "at byte 33 of 81");
  }
  b = good; /* 4 GiB from 81 bytes: refused before memory is asked for */
  big_endian(b.data + 16, 65535);
  big_endian(b.data + 20, 65535);
  sign(&b);
  io_refuses(read_png, &b, "W4017",
             "says 65535 x 65535 pixels; 81 bytes cannot hold so many");
  b = good;
  b.data[24] = 3; /* bits */
  sign(&b);
  io_refuses(read_png, &b, "W4017", "IHDR");
  b = good;
  big_endian(b.data + 20, 4); /* a row more than there are */
  sign(&b);
  io_refuses(read_png, &b, "W4017", "at byte");
  b = good;
  big_endian(b.data + 20, 2); /* and one less */
  sign(&b);
  io_refuses(read_png, &b, "W4017", "at byte");
}

static void bad_rows(void **state) {
  (void)state;
  io_bytes good = io_fixture("rgb.png");
  for (size_t i = 41; i < good.size - 16; i++) { /* the compressed rows */
    io_bytes b = good;
    b.data[i] ^= 0x10;
    io_refuses(read_png, &b, "W4017", "at byte");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_every_kind),
      cmocka_unit_test(palettes_and_transparent_colours),
      cmocka_unit_test(cuts_and_tails),
      cmocka_unit_test(bad_headers),
      cmocka_unit_test(bad_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
