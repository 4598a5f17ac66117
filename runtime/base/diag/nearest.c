/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/diag/nearest.h"

/* Edit distance with neighbours swapped (F. J. Damerau, CACM 7 (1964) 171-176),
 * in half steps: another case, or - for _, is half an edit. */

enum { kLongest = 64, kEdit = 2, kHalf = 1, kFar = 1000 };

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == '-' ? '_' : c;
}

static int change_cost(char a, char b) {
  if (a == b) return 0;
  return lower(a) == lower(b) ? kHalf : kEdit;
}

static int least(int a, int b) {
  return a < b ? a : b;
}

static bool same_letters(weir_sv a, weir_sv b) {
  if (a.size != b.size) return false;
  for (size_t i = 0; i < a.size; i++)
    if (lower(a.data[i]) != lower(b.data[i])) return false;
  return true;
}

/* The distance of |a| and |b|, or kFar once it is more than |most|. */
static int distance(weir_sv a, weir_sv b, int most) {
  int rows[3][kLongest + 1];
  int *before = rows[0], *last = rows[1], *row = rows[2];
  for (size_t j = 0; j <= b.size; j++) last[j] = (int)j * kEdit;
  for (size_t i = 1; i <= a.size; i++) {
    int best = row[0] = (int)i * kEdit;
    for (size_t j = 1; j <= b.size; j++) {
      int cost = last[j - 1] + change_cost(a.data[i - 1], b.data[j - 1]);
      cost = least(cost, least(last[j], row[j - 1]) + kEdit);
      if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
          a.data[i - 2] == b.data[j - 1])
        cost = least(cost, before[j - 2] + kEdit);
      row[j] = cost;
      best = least(best, cost);
    }
    /* a swap reaches two rows back, at one more edit */
    if (best > most + kEdit) return kFar;
    int *free_row = before;
    before = last;
    last = row;
    row = free_row;
  }
  return last[b.size] <= most ? last[b.size] : kFar;
}

weir_sv weir_nearest_name(weir_sv name, size_t count,
                          weir_sv (*name_at)(const void *self, size_t i),
                          const void *self) {
  weir_sv nearest = {"", 0};
  if (name.size < 2 || name.size > kLongest) return nearest;
  int most = kEdit * (int)((name.size < 3 ? 3 : name.size) / 3);
  for (size_t i = 0; i < count; i++) {
    weir_sv other = name_at(self, i);
    size_t longer = other.size > name.size ? other.size - name.size
                                           : name.size - other.size;
    if (other.size > kLongest || (int)longer * kEdit > most) continue;
    int d = same_letters(name, other) ? 0 : distance(name, other, most);
    if (d > most) continue;
    nearest = other;
    most = d - 1; /* only a nearer one takes its place */
    if (most < 0) break;
  }
  return nearest;
}
