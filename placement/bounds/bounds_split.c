/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bounds/bounds_split.h"
#include "runtime/base/size.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* To refute a period T, items are merged that T keeps together, and what is
 * left is spread over the devices in fractions.
 *
 * Two items that share a tensor can be apart only on two devices each of which
 * has time for its item and the copy. Where there is no such pair they are one;
 * the longer item can be apart from fewer, so this goes on. An item loses the
 * classes where it takes longer than T or holds more than the largest cap. If
 * it cannot share a device with a neighbour, the copy between them is a part of
 * its time: a maker's once per tensor, a reader's only where no other item
 * could be the one that fetches the tensor.
 *
 * Over tensors of at least |price| items hang together in components. One that
 * fits on no device is split, and each device with a part of it has a copy of
 * that price: T - price is left for its work, so that the component's work
 * counts T / (T - price) times.
 *
 * The spreading is a linear program; any weights of classes and any prices of
 * their bytes give a bound, by duality, so that the search for good ones may
 * stop anywhere. MARGIN takes back what rounding may have added.
 *
 * Cost: SEARCH times the uses and ROUNDS times the items, by classes. */

enum {
  CLASSES = 8,
  ITEMS = 4096, /* larger graphs have no such bound */
  SEARCH = 16,  /* halvings */
  MERGES = 16,  /* rounds of merging */
  ROUNDS = 30,  /* for the weights, */
  DOUBLINGS = 64,
  HALVINGS = 12, /* and in each for a price of bytes */
  PRICES = 12    /* of components */
};

#define MARGIN 1e-9

typedef struct splitter {
  const weir_items *s;
  const weir_place_problem *p;
  uint32_t classes;
  double devices[CLASSES];
  bool copies[CLASSES]; /* all of its devices spend time on copies */
  int64_t cap[CLASSES]; /* the largest; INT64_MAX: none */
  double caps[CLASSES]; /* their sum; INFINITY */
  double all_bytes;     /* of all items */
  int64_t *copy_ns;     /* per tensor: the shortest that a copy can be */
  int64_t *sorted;      /* the same by size */
  int64_t *own;         /* [item * classes + class], NO_KERNEL */
  /* Of one period. An item that was merged is that of its root. */
  uint32_t *root, *piece; /* |piece|: the same for components */
  int64_t *cost, *full;   /* of roots: without and with copies */
  int64_t *bytes;         /* of roots */
  int64_t *sum;           /* of components, as |cost| */
  int64_t *sum_bytes;
  double *work; /* of roots: for the spreading; INFINITY: not there */
} splitter;

static uint32_t find(uint32_t *root, uint32_t i) {
  while (root[i] != i) i = root[i] = root[root[i]];
  return i;
}

static uint32_t maker(const splitter *b, uint32_t t) {
  return b->s->of[b->p->tensor_node[t]];
}

/* The larger of two sums that both may be NO_KERNEL. */
static int64_t both(int64_t a, int64_t b) {
  weir_sum_add(&a, b);
  return a;
}

/* ---- Spreading */

/* The least sum by these weights; |load| and |held| get what goes to each
 * class. INFINITY: an item has no class. */
static double spread(const splitter *b, const double *weight,
                     const double *price, double *load, double *held) {
  double sum = 0;
  for (uint32_t c = 0; c < b->classes; c++) load[c] = held[c] = 0;
  for (uint32_t i = 0; i < b->s->count; i++) {
    if (b->root[i] != i) continue;
    double least = INFINITY, bytes = (double)b->bytes[i];
    uint32_t best = 0;
    const double *work = b->work + (size_t)i * b->classes;
    for (uint32_t c = 0; c < b->classes; c++) {
      double value = weight[c] * work[c] + price[c] * bytes;
      if (work[c] < INFINITY && value < least) least = value, best = c;
    }
    if (least == INFINITY) return INFINITY;
    sum += least;
    load[best] += work[best];
    held[best] += bytes;
  }
  for (uint32_t c = 0; c < b->classes; c++)
    if (price[c] > 0) sum -= price[c] * b->caps[c];
  return sum;
}

/* Raises the price of class |c|'s bytes until what goes there keeps the caps:
 * the sum has its greatest value there, for these weights. At that price some
 * items may go either way; |load| gets the mixture that fills the caps. */
static void find_price(const splitter *b, const double *weight, uint32_t c,
                       double *price, double *load) {
  double under[CLASSES], held[CLASSES], low = 0, high = 1.0 / 1024;
  price[c] = 0;
  spread(b, weight, price, load, held);
  double over = held[c];
  if (over <= b->caps[c]) return;
  for (int i = 0; i < DOUBLINGS + HALVINGS; i++) {
    bool ends = i >= DOUBLINGS;
    price[c] = ends ? (low + high) / 2 : high;
    spread(b, weight, price, under, held);
    bool fits = held[c] <= b->caps[c];
    if (!fits) memcpy(load, under, sizeof under), over = held[c];
    if (!fits) low = price[c];
    if (ends && fits) high = price[c];
    if (!ends && !fits) high *= 2;
    if (!ends && fits) i = DOUBLINGS - 1;
  }
  price[c] = high;
  spread(b, weight, price, under, held);
  double part = over > held[c] ? (b->caps[c] - held[c]) / (over - held[c]) : 0;
  for (uint32_t k = 0; k < b->classes; k++)
    load[k] = part * load[k] + (1 - part) * under[k];
}

/* The best bound of |work| that ROUNDS steps find, or the first above |stop|.
 */
static double area(const splitter *b, double stop) {
  double weight[CLASSES], price[CLASSES] = {0}, load[CLASSES], held[CLASSES];
  double best = 0, count = 0;
  int kinds = 0;
  for (uint32_t c = 0; c < b->classes; c++) count += b->devices[c];
  for (uint32_t c = 0; c < b->classes; c++) kinds += b->devices[c] > 0;
  for (uint32_t c = 0; c < b->classes; c++) weight[c] = 1 / count;
  int rounds = kinds == 1 ? 1 : ROUNDS; /* one class has one weight */
  for (int round = 1; round <= rounds && best <= stop; round++) {
    double mixed[CLASSES], most = 0, total = 0;
    bool capped = false;
    for (uint32_t c = 0; c < b->classes; c++) {
      if (b->all_bytes <= b->caps[c]) continue;
      find_price(b, weight, c, price, mixed);
      capped = true;
    }
    double got = spread(b, weight, price, load, held);
    if (got > best) best = got;
    for (uint32_t c = 0; c < b->classes; c++) {
      if (capped) load[c] = mixed[c];
      load[c] = b->devices[c] > 0 ? load[c] / b->devices[c] : 0;
      if (load[c] > most) most = load[c];
    }
    for (uint32_t c = 0; c < b->classes; c++) {
      if (most > 0) weight[c] *= 1 + load[c] / most / round;
      total += weight[c] * b->devices[c];
    }
    for (uint32_t c = 0; c < b->classes; c++) weight[c] /= total;
  }
  return best == INFINITY ? best : best * (1 - MARGIN);
}

/* ---- One period */

static bool fits(const splitter *b, uint32_t c, int64_t cost, int64_t bytes,
                 int64_t period) {
  return cost <= period && bytes <= b->cap[c];
}

static bool has_class(const splitter *b, uint32_t i, uint32_t c,
                      int64_t period) {
  return fits(b, c, b->full[(size_t)i * b->classes + c], b->bytes[i], period);
}

/* Whether roots |x| and |y| can be on two devices, a copy of |ns| between. */
static bool can_part(const splitter *b, uint32_t x, uint32_t y, int64_t ns,
                     int64_t period) {
  for (uint32_t c = 0; c < b->classes; c++) {
    int64_t at_x = b->cost[(size_t)x * b->classes + c];
    if (b->copies[c]) at_x = both(at_x, ns);
    if (at_x > period || !has_class(b, x, c, period)) continue;
    for (uint32_t d = 0; d < b->classes; d++) {
      int64_t at_y = b->cost[(size_t)y * b->classes + d];
      if (b->copies[d]) at_y = both(at_y, ns);
      if (at_y > period || !has_class(b, y, d, period)) continue;
      if (c != d || b->devices[c] > 1) return true;
    }
  }
  return false;
}

/* Whether roots |x| and |y| can be on one device of class |c|. */
static bool can_share(const splitter *b, uint32_t x, uint32_t y, uint32_t c,
                      int64_t period) {
  return fits(b, c,
              both(b->cost[(size_t)x * b->classes + c],
                   b->cost[(size_t)y * b->classes + c]),
              both(b->bytes[x], b->bytes[y]), period);
}

static void merge(splitter *b, uint32_t x, uint32_t y) {
  assert(x != y);
  b->root[y] = x;
  weir_sum_add(&b->bytes[x], b->bytes[y]);
  for (uint32_t c = 0; c < b->classes; c++)
    weir_sum_add(&b->cost[(size_t)x * b->classes + c],
                 b->cost[(size_t)y * b->classes + c]);
}

static bool merge_all(splitter *b, int64_t period) {
  const weir_place_problem *p = b->p;
  bool some = false;
  for (uint32_t t = 0; t < p->tensor_count; t++)
    for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
      uint32_t x = find(b->root, maker(b, t));
      uint32_t y = find(b->root, b->s->of[p->use_node[u]]);
      if (x == y || can_part(b, x, y, b->copy_ns[t], period)) continue;
      merge(b, x, y);
      some = true;
    }
  return some;
}

/* The copy of |t| that its maker's device and, where no other item can fetch
 * it, its reader's cannot do without. */
static void add_forced(splitter *b, uint32_t t, int64_t period) {
  const weir_place_problem *p = b->p;
  uint32_t x = find(b->root, maker(b, t)), reader = WEIR_PLACE_NONE;
  bool several = false;
  for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
    uint32_t y = find(b->root, b->s->of[p->use_node[u]]);
    if (y == x) continue;
    several |= reader != WEIR_PLACE_NONE && reader != y;
    reader = y;
  }
  if (reader == WEIR_PLACE_NONE) return;
  for (uint32_t c = 0; c < b->classes; c++) {
    bool sends = false;
    if (!b->copies[c]) continue;
    for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1] && !sends; u++) {
      uint32_t y = find(b->root, b->s->of[p->use_node[u]]);
      sends = y != x && !can_share(b, x, y, c, period);
    }
    if (sends)
      weir_sum_add(&b->full[(size_t)x * b->classes + c], b->copy_ns[t]);
    if (!several && !can_share(b, x, reader, c, period))
      weir_sum_add(&b->full[(size_t)reader * b->classes + c], b->copy_ns[t]);
  }
}

/* |full| from |cost|; true when an item then has no class. */
static bool count_copies(splitter *b, int64_t period) {
  memcpy(b->full, b->cost, b->s->count * b->classes * sizeof *b->full);
  for (uint32_t t = 0; t < b->p->tensor_count; t++) add_forced(b, t, period);
  for (uint32_t i = 0; i < b->s->count; i++) {
    bool some = b->root[i] != i;
    for (uint32_t c = 0; c < b->classes && !some; c++)
      some = has_class(b, i, c, period);
    if (!some) return true;
  }
  return false;
}

/* ---- Components */

static void join_over(splitter *b, int64_t price) {
  const weir_place_problem *p = b->p;
  memcpy(b->piece, b->root, b->s->count * sizeof *b->piece);
  for (uint32_t t = 0; t < p->tensor_count; t++) {
    if (b->copy_ns[t] < price) continue;
    uint32_t x = find(b->piece, maker(b, t));
    for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++)
      b->piece[find(b->piece, b->s->of[p->use_node[u]])] = x;
  }
  memset(b->sum, 0, b->s->count * b->classes * sizeof *b->sum);
  memset(b->sum_bytes, 0, b->s->count * sizeof *b->sum_bytes);
  for (uint32_t i = 0; i < b->s->count; i++) {
    uint32_t x = find(b->piece, i);
    if (b->root[i] != i) continue;
    weir_sum_add(&b->sum_bytes[x], b->bytes[i]);
    for (uint32_t c = 0; c < b->classes; c++)
      weir_sum_add(&b->sum[(size_t)x * b->classes + c],
                   b->cost[(size_t)i * b->classes + c]);
  }
}

static bool refuted_by(splitter *b, int64_t price, int64_t period) {
  double factor = (double)period / (double)(period - price);
  join_over(b, price);
  for (uint32_t i = 0; i < b->s->count; i++) {
    uint32_t x = find(b->piece, i);
    bool whole = false;
    for (uint32_t c = 0; c < b->classes; c++)
      whole |= fits(b, c, b->sum[(size_t)x * b->classes + c], b->sum_bytes[x],
                    period);
    for (uint32_t c = 0; c < b->classes && b->root[i] == i; c++) {
      int64_t cost = b->cost[(size_t)i * b->classes + c];
      b->work[(size_t)i * b->classes + c] =
          !has_class(b, i, c, period) ? INFINITY
          : whole || !b->copies[c]    ? (double)cost
                                      : (double)cost * factor;
    }
  }
  return area(b, (double)period) > (double)period;
}

/* ---- The search */

static void begin_period(splitter *b) {
  for (uint32_t i = 0; i < b->s->count; i++) {
    b->root[i] = i;
    b->bytes[i] = b->s->resident[i];
  }
  memcpy(b->cost, b->own, b->s->count * b->classes * sizeof *b->cost);
}

static bool is_refuted(splitter *b, int64_t period) {
  begin_period(b);
  for (int round = 0; round < MERGES; round++) {
    if (count_copies(b, period)) return true;
    if (!merge_all(b, period)) break;
  }
  if (count_copies(b, period)) return true;
  for (size_t k = 0; k < (size_t)b->s->count * b->classes; k++)
    b->work[k] = b->full[k] > period ? INFINITY : (double)b->full[k];
  for (uint32_t i = 0; i < b->s->count; i++)
    for (uint32_t c = 0; c < b->classes; c++)
      if (b->bytes[i] > b->cap[c])
        b->work[(size_t)i * b->classes + c] = INFINITY;
  if (area(b, (double)period) > (double)period) return true;
  uint32_t tensors = b->p->tensor_count;
  int64_t before = 0;
  for (uint32_t k = 1; k < PRICES && tensors > 0; k++) {
    int64_t price = b->sorted[(uint64_t)k * tensors / PRICES];
    if (price >= period || price <= before) continue;
    before = price;
    if (refuted_by(b, price, period)) return true;
  }
  return false;
}

static int64_t largest_refuted(splitter *b, int64_t upper) {
  int64_t low = 0, high = upper;
  if (upper <= 0) return 0;
  if (is_refuted(b, upper - 1)) return upper;
  for (int i = 0; i < SEARCH && high - low > 1; i++) {
    int64_t middle = low + (high - low) / 2;
    if (is_refuted(b, middle - 1))
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* ---- Life */

/* The shortest that a copy of each tensor can be, over any link. */
static void find_copies(splitter *b) {
  const weir_place_problem *p = b->p;
  weir_place_link least = {.fs_per_byte = INT64_MAX};
  size_t pairs = (size_t)p->device_count * p->device_count;
  for (size_t i = 0; i < pairs; i++) {
    if (p->link_of[i] == WEIR_PLACE_NONE) continue;
    int64_t fs = p->links[p->link_of[i]].fs_per_byte;
    if (fs < least.fs_per_byte) least.fs_per_byte = fs;
  }
  if (least.fs_per_byte == INT64_MAX) least.fs_per_byte = 0;
  for (uint32_t t = 0; t < p->tensor_count; t++) {
    int64_t ns = weir_place_link_ns(&least, p->tensor_bytes[t]);
    b->copy_ns[t] = ns < WEIR_LOAD_COPY_LIMIT ? ns : WEIR_LOAD_COPY_LIMIT;
    b->sorted[t] = b->copy_ns[t];
  }
}

static void find_classes(splitter *b) {
  const weir_place_problem *p = b->p;
  for (uint32_t c = 0; c < b->classes; c++) b->copies[c] = true;
  for (uint32_t d = 0; d < p->device_count; d++) {
    uint32_t c = p->devices[d].cls;
    int64_t cap = p->devices[d].memory_bytes;
    b->devices[c]++;
    b->copies[c] &= !p->no_copy_load[d];
    if (cap > b->cap[c]) b->cap[c] = cap;
    b->caps[c] += cap == INT64_MAX ? INFINITY : (double)cap;
  }
  for (uint32_t i = 0; i < b->s->count; i++)
    b->all_bytes += (double)b->s->resident[i];
  for (size_t k = 0; k < (size_t)b->s->count * b->classes; k++)
    b->own[k] = WEIR_PLACE_NO_KERNEL;
  for (uint32_t i = 0; i < b->s->count; i++)
    for (uint32_t d = 0; d < p->device_count; d++) {
      int64_t *own = &b->own[(size_t)i * b->classes + p->devices[d].cls];
      if (*own == WEIR_PLACE_NO_KERNEL) *own = weir_items_cost(b->s, i, d);
    }
}

static int by_size(const void *x, const void *y) {
  int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
  return a < b ? -1 : a > b;
}

static bool splitter_begin(splitter *b) {
  const weir_allocator *a = b->s->alloc;
  size_t items = (size_t)b->s->count + 1, cells = items * b->classes;
  size_t tensors = (size_t)b->p->tensor_count + 1;
  b->copy_ns = weir_alloc_array(a, tensors, sizeof *b->copy_ns);
  b->sorted = weir_alloc_array(a, tensors, sizeof *b->sorted);
  b->own = weir_alloc_array(a, cells, sizeof *b->own);
  b->root = weir_alloc_array(a, items, sizeof *b->root);
  b->piece = weir_alloc_array(a, items, sizeof *b->piece);
  b->cost = weir_alloc_array(a, cells, sizeof *b->cost);
  b->full = weir_alloc_array(a, cells, sizeof *b->full);
  b->bytes = weir_alloc_array(a, items, sizeof *b->bytes);
  b->sum = weir_alloc_array(a, cells, sizeof *b->sum);
  b->sum_bytes = weir_alloc_array(a, items, sizeof *b->sum_bytes);
  b->work = weir_alloc_array(a, cells, sizeof *b->work);
  if (b->copy_ns == NULL || b->sorted == NULL || b->own == NULL ||
      b->root == NULL || b->piece == NULL || b->cost == NULL ||
      b->full == NULL || b->bytes == NULL || b->sum == NULL ||
      b->sum_bytes == NULL || b->work == NULL)
    return false;
  find_copies(b);
  find_classes(b);
  qsort(b->sorted, b->p->tensor_count, sizeof *b->sorted, by_size);
  return true;
}

static void splitter_end(splitter *b) {
  const weir_allocator *a = b->s->alloc;
  weir_free(a, b->copy_ns);
  weir_free(a, b->sorted);
  weir_free(a, b->own);
  weir_free(a, b->root);
  weir_free(a, b->piece);
  weir_free(a, b->cost);
  weir_free(a, b->full);
  weir_free(a, b->bytes);
  weir_free(a, b->sum);
  weir_free(a, b->sum_bytes);
  weir_free(a, b->work);
}

static bool is_small(const weir_items *s) {
  return s->count > 0 && s->count <= ITEMS && s->p->class_count <= CLASSES;
}

weir_status weir_bound_period(const weir_items *s, int64_t upper_ns,
                              int64_t *out_ns, weir_error *err) {
  splitter b = {.s = s, .p = s->p, .classes = s->p->class_count};
  *out_ns = 0;
  if (!is_small(s)) return WEIR_OK;
  weir_status status = WEIR_OK;
  if (splitter_begin(&b))
    *out_ns = largest_refuted(&b, upper_ns);
  else
    status = weir_fail_memory(err, s->count * sizeof *b.own);
  splitter_end(&b);
  return status;
}

weir_status weir_bound_area(const weir_items *s, int64_t *out_ns,
                            weir_error *err) {
  splitter b = {.s = s, .p = s->p, .classes = s->p->class_count};
  *out_ns = 0;
  if (!is_small(s)) return WEIR_OK;
  weir_status status = WEIR_OK;
  if (splitter_begin(&b)) {
    begin_period(&b);
    for (uint32_t i = 0; i < s->count; i++)
      for (uint32_t c = 0; c < b.classes; c++) {
        size_t k = (size_t)i * b.classes + c;
        b.work[k] = b.own[k] == WEIR_PLACE_NO_KERNEL || b.bytes[i] > b.cap[c]
                        ? INFINITY
                        : (double)b.own[k];
      }
    double got = area(&b, INFINITY);
    if (got < 9e18) *out_ns = (int64_t)got;
  } else {
    status = weir_fail_memory(err, s->count * sizeof *b.own);
  }
  splitter_end(&b);
  return status;
}
