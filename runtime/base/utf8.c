/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/utf8.h"

/* UTF-8 as Unicode defines it (RFC 3629): the shortest form only, no
 * surrogates, nothing above U+10FFFF. Overlong forms are refused, because two
 * spellings of one character would get past checks of names. */

size_t weir_utf8_decode(weir_sv text, uint32_t *out_point) {
  const unsigned char *p = (const unsigned char *)text.data;
  if (text.size == 0) return 0;
  if (p[0] < 0x80) {
    *out_point = p[0];
    return 1;
  }
  size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
  if (p[0] < 0xc2 || p[0] > 0xf4 || text.size < n) return 0;
  uint32_t point = p[0] & (0xffu >> (n + 1));
  for (size_t i = 1; i < n; i++) {
    if ((p[i] & 0xc0) != 0x80) return 0;
    point = point << 6 | (p[i] & 0x3f);
  }
  static const uint32_t kLeast[5] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[n] || point > 0x10ffff) return 0;
  if (point >= 0xd800 && point <= 0xdfff) return 0;
  *out_point = point;
  return n;
}

size_t weir_utf8_encode(uint32_t point, char *dst) {
  if (point < 0x80) {
    dst[0] = (char)point;
    return 1;
  }
  size_t n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  for (size_t i = n - 1; i > 0; i--) {
    dst[i] = (char)(0x80 | (point & 0x3f));
    point >>= 6;
  }
  static const unsigned char kLead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
  dst[0] = (char)(kLead[n] | point);
  return n;
}

bool weir_utf8_valid(weir_sv text, size_t *bad_offset) {
  size_t at = 0;
  while (at < text.size) {
    uint64_t word;
    if (text.size - at >= sizeof word) { /* eight ASCII bytes at once */
      memcpy(&word, text.data + at, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        at += sizeof word;
        continue;
      }
    }
    uint32_t point;
    size_t n =
        weir_utf8_decode((weir_sv){text.data + at, text.size - at}, &point);
    if (n == 0) {
      if (bad_offset != NULL) *bad_offset = at;
      return false;
    }
    at += n;
  }
  return true;
}

size_t weir_utf8_count(weir_sv text) {
  size_t at = 0, count = 0;
  while (at < text.size) {
    uint32_t point;
    size_t n =
        weir_utf8_decode((weir_sv){text.data + at, text.size - at}, &point);
    at += n > 0 ? n : 1;
    count++;
  }
  return count;
}

size_t weir_utf8_line_break(weir_sv text) {
  if (weir_sv_starts_with(text, "\r\n")) return 2;
  if (text.size > 0 && (text.data[0] == '\n' || text.data[0] == '\r')) return 1;
  if (weir_sv_starts_with(text, "\xc2\x85")) return 2;
  if (weir_sv_starts_with(text, "\xe2\x80\xa8")) return 3;
  return weir_sv_starts_with(text, "\xe2\x80\xa9") ? 3 : 0;
}

typedef struct point_range {
  uint32_t first, last;
} point_range;

/* Wide and fullwidth characters (UAX #11), in order, for bisection. */
static const point_range kWide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},
    {0x23e9, 0x23ec},   {0x23f0, 0x23f0},   {0x23f3, 0x23f3},
    {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},
    {0x267f, 0x267f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},
    {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},
    {0x26ce, 0x26ce},   {0x26d4, 0x26d4},   {0x26ea, 0x26ea},
    {0x26f2, 0x26f3},   {0x26f5, 0x26f5},   {0x26fa, 0x26fa},
    {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},
    {0x2728, 0x2728},   {0x274c, 0x274c},   {0x274e, 0x274e},
    {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
    {0x27b0, 0x27b0},   {0x27bf, 0x27bf},   {0x2b1b, 0x2b1c},
    {0x2b50, 0x2b50},   {0x2b55, 0x2b55},   {0x2e80, 0x303e},
    {0x3041, 0x4dbf},   {0x4e00, 0xa4cf},   {0xa960, 0xa97f},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},
    {0xfe30, 0xfe6f},   {0xff01, 0xff60},   {0xffe0, 0xffe6},
    {0x16fe0, 0x18cff}, {0x1aff0, 0x1b2ff}, {0x1f004, 0x1f004},
    {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a},
    {0x1f200, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c},
    {0x1f37e, 0x1f393}, {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3},
    {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4}, {0x1f3f8, 0x1f43e},
    {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d},
    {0x1f54b, 0x1f54e}, {0x1f550, 0x1f567}, {0x1f57a, 0x1f57a},
    {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f},
    {0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d2},
    {0x1f6d5, 0x1f6df}, {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc},
    {0x1f7e0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945},
    {0x1f947, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};

/* Marks that are drawn over the character before them, and format characters;
 * those of common scripts. */
static const point_range kZero[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489},   {0x0591, 0x05bd},   {0x0610, 0x061a},
    {0x064b, 0x065f}, {0x06d6, 0x06dc},   {0x0900, 0x0902},   {0x093c, 0x093c},
    {0x0941, 0x0948}, {0x094d, 0x094d},   {0x0e31, 0x0e31},   {0x0e34, 0x0e3a},
    {0x0e47, 0x0e4e}, {0x1160, 0x11ff},   {0x1ab0, 0x1aff},   {0x1dc0, 0x1dff},
    {0x200b, 0x200f}, {0x202a, 0x202e},   {0x2060, 0x2064},   {0x20d0, 0x20ff},
    {0x302a, 0x302d}, {0x3099, 0x309a},   {0xfe00, 0xfe0f},   {0xfe20, 0xfe2f},
    {0xfeff, 0xfeff}, {0xe0001, 0xe007f}, {0xe0100, 0xe01ef},
};

static bool in_ranges(uint32_t point, const point_range *ranges, size_t count) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (point > ranges[mid].last)
      low = mid + 1;
    else
      high = mid;
  }
  return low < count && point >= ranges[low].first;
}

int weir_utf8_width(uint32_t point) {
  if (point < 0x300) return 1;
  if (in_ranges(point, kZero, sizeof kZero / sizeof kZero[0])) return 0;
  return in_ranges(point, kWide, sizeof kWide / sizeof kWide[0]) ? 2 : 1;
}

/* Controls, which a terminal obeys, and marks of direction, which can make a
 * line read otherwise than it is. */
bool weir_utf8_unsafe(uint32_t point) {
  if (point < 0x20 || (point >= 0x7f && point < 0xa0)) return true;
  return (point >= 0x200e && point <= 0x200f) ||
         (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2066 && point <= 0x2069);
}
