/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/bytes/crc32c.h"

#include <string.h>

/* Three ways to one sum: by tables, eight bytes at a time; by the CPU's
 * instruction, in three lanes; and joining two sums, by which lanes become one.
 * Joining multiplies the first sum by x^(8 size) modulo the polynomial, by
 * repeated squaring: O(log size), however long the bytes were.
 *
 * The CRC is linear over bits: an entry of a table is the exclusive or of the
 * entries of its single bits, which stand here. Table k is for a byte that k
 * further bytes follow. */
#define PICK(i, bit, v) (((i) >> (bit)&1u) ? (v) : 0u)
#define ENTRY(i, a, b, c, d, e, f, g, h)                           \
  (PICK(i, 0, a) ^ PICK(i, 1, b) ^ PICK(i, 2, c) ^ PICK(i, 3, d) ^ \
   PICK(i, 4, e) ^ PICK(i, 5, f) ^ PICK(i, 6, g) ^ PICK(i, 7, h))
#define E4(i, ...)                                                             \
  ENTRY(i, __VA_ARGS__), ENTRY(i + 1, __VA_ARGS__), ENTRY(i + 2, __VA_ARGS__), \
      ENTRY(i + 3, __VA_ARGS__)
#define E16(i, ...)                                                   \
  E4(i, __VA_ARGS__), E4(i + 4, __VA_ARGS__), E4(i + 8, __VA_ARGS__), \
      E4(i + 12, __VA_ARGS__)
#define E64(i, ...)                                                        \
  E16(i, __VA_ARGS__), E16(i + 16, __VA_ARGS__), E16(i + 32, __VA_ARGS__), \
      E16(i + 48, __VA_ARGS__)
#define TABLE(...)                                                    \
  {                                                                   \
    E64(0, __VA_ARGS__), E64(64, __VA_ARGS__), E64(128, __VA_ARGS__), \
        E64(192, __VA_ARGS__)                                         \
  }

static const uint32_t kTable[8][256] = {
    TABLE(0xf26b8303u, 0xe13b70f7u, 0xc79a971fu, 0x8ad958cfu, 0x105ec76fu,
          0x20bd8edeu, 0x417b1dbcu, 0x82f63b78u),
    TABLE(0x13a29877u, 0x274530eeu, 0x4e8a61dcu, 0x9d14c3b8u, 0x3fc5f181u,
          0x7f8be302u, 0xff17c604u, 0xfbc3faf9u),
    TABLE(0xa541927eu, 0x4f6f520du, 0x9edea41au, 0x38513ec5u, 0x70a27d8au,
          0xe144fb14u, 0xc76580d9u, 0x8b277743u),
    TABLE(0xdd45aab8u, 0xbf672381u, 0x7b2231f3u, 0xf64463e6u, 0xe964b13du,
          0xd725148bu, 0xaba65fe7u, 0x52a0c93fu),
    TABLE(0x38116facu, 0x7022df58u, 0xe045beb0u, 0xc5670b91u, 0x8f2261d3u,
          0x1ba8b557u, 0x37516aaeu, 0x6ea2d55cu),
    TABLE(0xef306b19u, 0xdb8ca0c3u, 0xb2f53777u, 0x6006181fu, 0xc00c303eu,
          0x85f4168du, 0x0e045bebu, 0x1c08b7d6u),
    TABLE(0x68032cc8u, 0xd0065990u, 0xa5e0c5d1u, 0x4e2dfd53u, 0x9c5bfaa6u,
          0x3d5b83bdu, 0x7ab7077au, 0xf56e0ef4u),
    TABLE(0x493c7d27u, 0x9278fa4eu, 0x211d826du, 0x423b04dau, 0x847609b4u,
          0x0d006599u, 0x1a00cb32u, 0x34019664u)};

static uint32_t by_bytes(uint32_t c, const uint8_t *p, size_t size) {
  for (size_t i = 0; i < size; i++) c = kTable[0][(c ^ p[i]) & 0xff] ^ c >> 8;
  return c;
}

uint32_t weir_crc32c_table(uint32_t crc, const void *data, size_t size) {
  const uint8_t *p = data;
  uint32_t c = ~crc;
  for (; size >= 8; p += 8, size -= 8) {
    uint32_t a = c ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 |
                      (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
    c = kTable[7][a & 0xff] ^ kTable[6][a >> 8 & 0xff] ^
        kTable[5][a >> 16 & 0xff] ^ kTable[4][a >> 24] ^ kTable[3][p[4]] ^
        kTable[2][p[5]] ^ kTable[1][p[6]] ^ kTable[0][p[7]];
  }
  return ~by_bytes(c, p, size);
}

/* a * b modulo the polynomial; bit 31 is the factor of x^0. */
static uint32_t times(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    if (a >> 31) product ^= b;
    b = b >> 1 ^ (b & 1 ? 0x82f63b78u : 0);
  }
  return product;
}

uint32_t weir_crc32c_join(uint32_t a, uint32_t b, uint64_t b_size) {
  uint32_t square = 1u << 23; /* x^8: one byte */
  for (; b_size != 0; b_size >>= 1) {
    if (b_size & 1) a = times(a, square);
    square = times(square, square);
  }
  return a ^ b;
}

#if defined(__x86_64__)
#include <nmmintrin.h>

/* The instruction takes three cycles and one can start in each, so three lanes
 * of a block are summed at once, then joined. */
enum { kLaneBytes = 4096 };
static const uint32_t kLaneShift = 0x35d73a62u; /* x^(8 * kLaneBytes) */

__attribute__((target("sse4.2"))) static uint32_t by_lanes(uint32_t crc,
                                                           const uint8_t *p) {
  uint64_t a = crc, b = 0, c = 0;
  for (size_t i = 0; i < kLaneBytes; i += 8) {
    uint64_t words[3];
    memcpy(&words[0], p + i, 8);
    memcpy(&words[1], p + i + kLaneBytes, 8);
    memcpy(&words[2], p + i + 2 * kLaneBytes, 8);
    a = _mm_crc32_u64(a, words[0]);
    b = _mm_crc32_u64(b, words[1]);
    c = _mm_crc32_u64(c, words[2]);
  }
  uint32_t two = times((uint32_t)a, kLaneShift) ^ (uint32_t)b;
  return times(two, kLaneShift) ^ (uint32_t)c;
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(
    uint32_t crc, const void *data, size_t size) {
  const uint8_t *p = data;
  uint64_t c = ~crc;
  for (; size >= 3 * kLaneBytes; p += 3 * kLaneBytes, size -= 3 * kLaneBytes)
    c = by_lanes((uint32_t)c, p);
  for (; size >= 8; p += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    c = _mm_crc32_u64(c, word);
  }
  uint32_t low = (uint32_t)c;
  for (; size > 0; p++, size--) low = _mm_crc32_u8(low, *p);
  return ~low;
}

uint32_t weir_crc32c(uint32_t crc, const void *data, size_t size) {
  return __builtin_cpu_supports("sse4.2") ? by_instruction(crc, data, size)
                                          : weir_crc32c_table(crc, data, size);
}
#else
uint32_t weir_crc32c(uint32_t crc, const void *data, size_t size) {
  return weir_crc32c_table(crc, data, size);
}
#endif
