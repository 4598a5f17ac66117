/* SPDX-License-Identifier: Apache-2.0 */
/* Builds problems: lists while it grows, arrays in one arena when it is
 * finished.
 *
 * The builder sticks to the first failure, so callers check once. It takes
 * nodes in topological order and uses of earlier tensors only; acyclicity needs
 * no pass of its own. Arrays are in compressed rows: item i's part of a list is
 * from first[i] to first[i + 1].
 * Cost: O(nodes + uses + devices^2) to finish, and equal sets of devices are
 * found one by one, O(sets) a set. */
#include "placement/problem.h"
#include "runtime/base/size.h"

#include <assert.h>
#include <string.h>

struct weir_place_builder {
  const weir_allocator *alloc;
  weir_place_problem *problem; /* its arena holds the texts */
  uint32_t class_count;
  bool failed, bad;
  WEIR_VEC(weir_place_device) devices;
  WEIR_VEC(bool) no_copy_load;
  WEIR_VEC(weir_place_link) links;
  WEIR_VEC(uint32_t) ways; /* from, to, link */
  WEIR_VEC(int64_t) cost;
  WEIR_VEC(int64_t) resident;
  WEIR_VEC(int64_t) temp;
  WEIR_VEC(weir_sv) names;
  WEIR_VEC(uint32_t) allowed;
  WEIR_VEC(uint32_t) group;
  WEIR_VEC(uint64_t) sets; /* 16 words each while building */
  WEIR_VEC(uint32_t) out_first;
  WEIR_VEC(int64_t) tensor_bytes;
  WEIR_VEC(uint32_t) tensor_node;
  WEIR_VEC(uint32_t) tensor_keeper;
  WEIR_VEC(uint32_t) over_in;
  WEIR_VEC(uint32_t) over_out;
  WEIR_VEC(uint32_t) in_first;
  WEIR_VEC(uint32_t) in_tensor;
  WEIR_VEC(int64_t) constant_bytes;
  WEIR_VEC(uint32_t) constant_home;
  WEIR_VEC(uint32_t) read_first;
  WEIR_VEC(uint32_t) read_constant;
};

enum { SET_WORDS = WEIR_PLACE_DEVICES / 64 };

weir_status weir_place_builder_create(const weir_allocator *alloc,
                                      uint32_t class_count,
                                      weir_place_builder **out_builder,
                                      weir_error *err) {
  *out_builder = NULL;
  weir_place_builder *b = weir_alloc_array(alloc, 1, sizeof *b);
  if (b == NULL) return weir_fail_memory(err, sizeof *b);
  b->alloc = alloc;
  b->class_count = class_count;
  b->bad = class_count == 0 || class_count > WEIR_PLACE_CLASSES;
  b->problem = weir_alloc_array(alloc, 1, sizeof *b->problem);
  if (b->problem == NULL) {
    weir_free(alloc, b);
    return weir_fail_memory(err, sizeof *b->problem);
  }
  weir_arena_init(&b->problem->arena, alloc);
  for (int i = 0; i < SET_WORDS; i++) /* set 0: finish fills it in */
    b->failed |= !weir_vec_push(alloc, &b->sets, 0);
  *out_builder = b;
  return WEIR_OK;
}

void weir_place_builder_release(weir_place_builder *b) {
  if (b == NULL) return;
  const weir_allocator *a = b->alloc;
  weir_vec_free(a, &b->devices);
  weir_vec_free(a, &b->no_copy_load);
  weir_vec_free(a, &b->links);
  weir_vec_free(a, &b->ways);
  weir_vec_free(a, &b->cost);
  weir_vec_free(a, &b->resident);
  weir_vec_free(a, &b->temp);
  weir_vec_free(a, &b->names);
  weir_vec_free(a, &b->allowed);
  weir_vec_free(a, &b->group);
  weir_vec_free(a, &b->sets);
  weir_vec_free(a, &b->out_first);
  weir_vec_free(a, &b->tensor_bytes);
  weir_vec_free(a, &b->tensor_node);
  weir_vec_free(a, &b->tensor_keeper);
  weir_vec_free(a, &b->over_in);
  weir_vec_free(a, &b->over_out);
  weir_vec_free(a, &b->in_first);
  weir_vec_free(a, &b->in_tensor);
  weir_vec_free(a, &b->constant_bytes);
  weir_vec_free(a, &b->constant_home);
  weir_vec_free(a, &b->read_first);
  weir_vec_free(a, &b->read_constant);
  weir_place_problem_release(b->problem);
  weir_free(a, b);
}

void weir_place_problem_release(weir_place_problem *p) {
  if (p == NULL) return;
  const weir_allocator *a = p->arena.alloc;
  weir_arena_release(&p->arena);
  weir_free(a, p);
}

static weir_sv keep_text(weir_place_builder *b, weir_sv text) {
  if (text.size == 0) return (weir_sv){0};
  char *copy = weir_arena_string(&b->problem->arena, text.data, text.size);
  b->failed |= copy == NULL;
  return copy == NULL ? (weir_sv){0} : (weir_sv){copy, text.size};
}

/* Appends to a list of the builder; sets |failed|. */
#define PUSH(b, list, ...) \
  ((b)->failed |= !weir_vec_push((b)->alloc, &(b)->list, __VA_ARGS__))

uint32_t weir_place_add_device(weir_place_builder *b,
                               const weir_place_device *device) {
  uint32_t id = (uint32_t)b->devices.count;
  b->bad |= id >= WEIR_PLACE_DEVICES || device->cls >= b->class_count ||
            device->memory_bytes < 0 || b->in_first.count != 0;
  weir_place_device copy = *device;
  copy.name = keep_text(b, device->name);
  PUSH(b, devices, copy);
  PUSH(b, no_copy_load, false);
  return id;
}

void weir_place_no_copy_load(weir_place_builder *b, uint32_t device) {
  if (b->failed) return;
  if (device >= b->no_copy_load.count)
    b->bad = true;
  else
    b->no_copy_load.items[device] = true;
}

uint32_t weir_place_add_link(weir_place_builder *b,
                             const weir_place_link *link) {
  uint32_t id = (uint32_t)b->links.count;
  b->bad |= link->latency_ns < 0 || link->fs_per_byte < 0 ||
            link->send_ns < 0 || link->send_fs_per_byte < 0;
  PUSH(b, links, *link);
  return id;
}

void weir_place_connect(weir_place_builder *b, uint32_t from, uint32_t to,
                        uint32_t link) {
  b->bad |= from >= b->devices.count || to >= b->devices.count ||
            link >= b->links.count || from == to;
  PUSH(b, ways, from);
  PUSH(b, ways, to);
  PUSH(b, ways, link);
}

void weir_place_connect_all(weir_place_builder *b,
                            const weir_place_link *link) {
  uint32_t count = (uint32_t)b->devices.count;
  uint32_t one = link->exclusive ? 0 : weir_place_add_link(b, link);
  for (uint32_t i = 0; i < count && !b->failed; i++)
    for (uint32_t j = 0; j < count; j++)
      if (i != j)
        weir_place_connect(
            b, i, j, link->exclusive ? weir_place_add_link(b, link) : one);
}

uint32_t weir_place_add_set(weir_place_builder *b, const uint32_t *devices,
                            uint32_t count) {
  uint64_t words[SET_WORDS] = {0};
  for (uint32_t i = 0; i < count; i++) {
    b->bad |= devices[i] >= b->devices.count;
    if (devices[i] < WEIR_PLACE_DEVICES)
      words[devices[i] >> 6] |= UINT64_C(1) << (devices[i] & 63);
  }
  size_t sets = b->sets.count / SET_WORDS;
  for (size_t i = 1; i < sets; i++)
    if (memcmp(b->sets.items + i * SET_WORDS, words, sizeof words) == 0)
      return (uint32_t)i;
  for (int i = 0; i < SET_WORDS; i++) PUSH(b, sets, words[i]);
  return (uint32_t)sets;
}

uint32_t weir_place_add_node(weir_place_builder *b,
                             const weir_place_node_spec *node) {
  uint32_t id = (uint32_t)b->in_first.count;
  b->bad |= node->resident_bytes < 0 ||
            node->set >= b->sets.count / SET_WORDS || id == WEIR_PLACE_NONE - 1;
  PUSH(b, in_first, (uint32_t)b->in_tensor.count);
  PUSH(b, out_first, (uint32_t)b->tensor_bytes.count);
  PUSH(b, read_first, (uint32_t)b->read_constant.count);
  for (uint32_t c = 0; c < b->class_count; c++) {
    b->bad |= node->cost[c] < 0;
    PUSH(b, cost, node->cost[c]);
  }
  PUSH(b, resident, node->resident_bytes);
  PUSH(b, temp, node->temp_bytes);
  PUSH(b, over_in, WEIR_PLACE_NONE);
  PUSH(b, over_out, WEIR_PLACE_NONE);
  PUSH(b, names, node->name_stays ? node->name : keep_text(b, node->name));
  PUSH(b, allowed, node->set);
  PUSH(b, group, node->group);
  return id;
}

uint32_t weir_place_add_tensor(weir_place_builder *b, uint32_t producer,
                               int64_t bytes) {
  uint32_t id = (uint32_t)b->tensor_bytes.count;
  b->bad |= bytes < 0 || producer + 1 != b->in_first.count;
  PUSH(b, tensor_bytes, bytes);
  PUSH(b, tensor_node, producer);
  PUSH(b, tensor_keeper, WEIR_PLACE_NONE);
  return id;
}

void weir_place_keep_tensor(weir_place_builder *b, uint32_t tensor,
                            uint32_t keeper) {
  if (b->failed) return;
  if (tensor >= b->tensor_keeper.count)
    b->bad = true;
  else
    b->tensor_keeper.items[tensor] = keeper;
}

void weir_place_add_over(weir_place_builder *b, uint32_t in, uint32_t out) {
  size_t tensors = b->tensor_bytes.count, nodes = b->over_in.count;
  if (b->failed) return;
  if (in >= tensors || out >= tensors || nodes == 0 ||
      b->tensor_node.items[out] + 1 != nodes ||
      b->tensor_bytes.items[in] != b->tensor_bytes.items[out]) {
    b->bad = true;
    return;
  }
  b->over_in.items[nodes - 1] = in;
  b->over_out.items[nodes - 1] = out;
}

void weir_place_add_use(weir_place_builder *b, uint32_t node, uint32_t tensor) {
  if (b->failed) return;
  if (node + 1 != b->in_first.count || tensor >= b->tensor_bytes.count ||
      b->out_first.items[node] <= tensor)
    b->bad = true;
  if (b->bad) return;
  /* A node that uses a tensor twice needs it once. */
  for (size_t i = b->in_first.items[node]; i < b->in_tensor.count; i++)
    if (b->in_tensor.items[i] == tensor) return;
  PUSH(b, in_tensor, tensor);
}

void weir_place_lay_out(weir_place_builder *b) {
  b->problem->laid_out = true;
}

uint32_t weir_place_add_constant(weir_place_builder *b, uint32_t home,
                                 int64_t bytes) {
  uint32_t id = (uint32_t)b->constant_bytes.count;
  b->bad |= bytes < 0 || (home != WEIR_PLACE_NONE && home >= b->in_first.count);
  PUSH(b, constant_bytes, bytes);
  PUSH(b, constant_home, home);
  return id;
}

void weir_place_add_constant_use(weir_place_builder *b, uint32_t node,
                                 uint32_t constant) {
  if (b->failed) return;
  if (node + 1 != b->in_first.count || constant >= b->constant_bytes.count)
    b->bad = true;
  if (b->bad) return;
  for (size_t i = b->read_first.items[node]; i < b->read_constant.count; i++)
    if (b->read_constant.items[i] == constant) return;
  PUSH(b, read_constant, constant);
}

void weir_place_add_new_use(weir_place_builder *b, uint32_t node,
                            uint32_t tensor) {
  if (b->failed) return;
  if (node + 1 != b->in_first.count || tensor >= b->tensor_bytes.count ||
      b->out_first.items[node] <= tensor)
    b->bad = true;
  else
    PUSH(b, in_tensor, tensor);
}

/* ---- Finishing */

/* A list of the builder as an array of the problem. The list goes at once, so
 * that a large problem is not there twice. */
static void *keep(weir_place_builder *b, void **items, size_t count,
                  size_t bytes) {
  void *copy =
      weir_arena_array(&b->problem->arena, count == 0 ? 1 : count, bytes);
  if (copy != NULL && count != 0) memcpy(copy, *items, count * bytes);
  weir_free(b->alloc, *items);
  *items = NULL;
  return copy;
}

#define KEEP(p, b, field, list)                                        \
  (((p)->field = keep((b), (void **)&(b)->list.items, (b)->list.count, \
                      sizeof *(b)->list.items)) != NULL)

static bool keep_sets(weir_place_problem *p, const weir_place_builder *b) {
  p->set_count = (uint32_t)(b->sets.count / SET_WORDS);
  p->set_words = (p->device_count + 63) / 64;
  uint64_t *sets = weir_arena_array(
      &p->arena, (size_t)p->set_count * p->set_words, sizeof *sets);
  if (sets == NULL) return false;
  for (uint32_t i = 0; i < p->set_count; i++)
    memcpy(sets + (size_t)i * p->set_words, b->sets.items + i * SET_WORDS,
           p->set_words * sizeof *sets);
  for (uint32_t d = 0; d < p->device_count; d++)
    sets[d >> 6] |= UINT64_C(1) << (d & 63);
  p->sets = sets;
  return true;
}

static bool keep_ways(weir_place_problem *p, const weir_place_builder *b) {
  size_t pairs = (size_t)p->device_count * p->device_count;
  uint32_t *link_of = weir_arena_array(&p->arena, pairs, sizeof *link_of);
  if (link_of == NULL) return false;
  memset(link_of, 0xff, pairs * sizeof *link_of);
  for (size_t i = 0; i < b->ways.count; i += 3)
    link_of[(size_t)b->ways.items[i] * p->device_count + b->ways.items[i + 1]] =
        b->ways.items[i + 2];
  p->link_of = link_of;
  return true;
}

/* A relation of nodes to things, as rows of nodes. */
typedef struct relation {
  const uint32_t *first, *thing; /* of each node */
  uint32_t nodes, things, pairs;
} relation;

/* The nodes of each thing, from the things of each node: a counting sort.
 * Counts stand two places on, so that after the last pass first[t] begins
 * thing t. */
static bool invert(weir_place_problem *p, const relation *r,
                   const uint32_t **out_first, const uint32_t **out_node) {
  size_t things = (size_t)r->things + 1;
  uint32_t *first = weir_arena_array(&p->arena, things + 1, sizeof *first);
  uint32_t *node =
      weir_arena_array(&p->arena, r->pairs == 0 ? 1 : r->pairs, sizeof *node);
  if (first == NULL || node == NULL) return false;
  for (uint32_t i = 0; i < r->pairs; i++) first[r->thing[i] + 2]++;
  for (size_t t = 2; t < things; t++) first[t] += first[t - 1];
  for (uint32_t n = 0; n < r->nodes; n++)
    for (uint32_t i = r->first[n]; i < r->first[n + 1]; i++)
      node[first[r->thing[i] + 1]++] = n;
  assert(first[r->things] == r->pairs);
  *out_first = first;
  *out_node = node;
  return true;
}

static bool keep_uses(weir_place_problem *p) {
  relation uses = {p->in_first, p->in_tensor, p->node_count, p->tensor_count,
                   p->use_count};
  relation reads = {p->read_first, p->read_constant, p->node_count,
                    p->constant_count, p->read_count};
  return invert(p, &uses, &p->use_first, &p->use_node) &&
         invert(p, &reads, &p->reader_first, &p->reader_node);
}

/* Numbers groups from 0 in order of first use. */
static bool keep_groups(weir_place_problem *p, const weir_place_builder *b) {
  uint32_t most = 0;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (b->group.items[n] != WEIR_PLACE_NONE && b->group.items[n] >= most)
      most = b->group.items[n] + 1;
  uint32_t *group =
      weir_arena_array(&p->arena, (size_t)p->node_count + 1, sizeof *group);
  uint32_t *renamed =
      weir_arena_array(&p->arena, (size_t)most + 1, sizeof *renamed);
  if (group == NULL || renamed == NULL) return false;
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint32_t g = b->group.items[n];
    if (g != WEIR_PLACE_NONE && renamed[g] == 0) renamed[g] = ++p->group_count;
    group[n] = g == WEIR_PLACE_NONE ? g : renamed[g] - 1;
  }
  p->group = group;
  return true;
}

typedef struct figures {
  int64_t *items;
  size_t count;
} figures;

/* Sums of bytes are formed in many places, also of what lies on several devices
 * at once. Where all of them together, on each device, would pass 2^60, which
 * no memory has, each is cut to its share of that: then no sum leaves its
 * range. */
static void bound_bytes(weir_place_builder *b) {
  const int64_t most = INT64_MAX / 8;
  figures lists[] = {{b->resident.items, b->resident.count},
                     {b->temp.items, b->temp.count},
                     {b->tensor_bytes.items, b->tensor_bytes.count},
                     {b->constant_bytes.items, b->constant_bytes.count}};
  int64_t sum = 0, count = 1;
  for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
    count += (int64_t)lists[k].count;
    for (size_t i = 0; i < lists[k].count; i++)
      weir_sum_add(&sum, lists[k].items[i] < 0 ? -(lists[k].items[i] + 1)
                                               : lists[k].items[i]);
  }
  int64_t devices = (int64_t)b->devices.count;
  if (sum <= most / devices) return;
  int64_t share = most / devices / count;
  for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
    for (size_t i = 0; i < lists[k].count; i++) {
      int64_t *bytes = &lists[k].items[i];
      *bytes = *bytes > share ? share : *bytes < -share ? -share : *bytes;
    }
}

static bool keep_all(weir_place_problem *p, weir_place_builder *b) {
  p->node_count = (uint32_t)b->allowed.count;
  p->tensor_count = (uint32_t)b->tensor_bytes.count;
  p->use_count = (uint32_t)b->in_tensor.count;
  p->class_count = b->class_count;
  p->device_count = (uint32_t)b->devices.count;
  p->link_count = (uint32_t)b->links.count;
  PUSH(b, in_first, p->use_count);
  PUSH(b, out_first, p->tensor_count);
  p->constant_count = (uint32_t)b->constant_bytes.count;
  p->read_count = (uint32_t)b->read_constant.count;
  PUSH(b, read_first, p->read_count);
  return !b->failed && KEEP(p, b, devices, devices) &&
         KEEP(p, b, no_copy_load, no_copy_load) && KEEP(p, b, links, links) &&
         KEEP(p, b, cost, cost) && KEEP(p, b, resident_bytes, resident) &&
         KEEP(p, b, temp_bytes, temp) && KEEP(p, b, over_in, over_in) &&
         KEEP(p, b, over_out, over_out) && KEEP(p, b, names, names) &&
         KEEP(p, b, out_first, out_first) &&
         KEEP(p, b, tensor_bytes, tensor_bytes) &&
         KEEP(p, b, tensor_node, tensor_node) &&
         KEEP(p, b, tensor_keeper, tensor_keeper) &&
         KEEP(p, b, in_first, in_first) && KEEP(p, b, in_tensor, in_tensor) &&
         KEEP(p, b, constant_bytes, constant_bytes) &&
         KEEP(p, b, constant_home, constant_home) &&
         KEEP(p, b, read_first, read_first) &&
         KEEP(p, b, read_constant, read_constant) &&
         KEEP(p, b, allowed, allowed) && keep_sets(p, b) && keep_ways(p, b) &&
         keep_uses(p) && keep_groups(p, b);
}

static weir_status check_runnable(const weir_place_problem *p,
                                  weir_error *err) {
  for (uint32_t n = 0; n < p->node_count; n++) {
    bool some = false;
    for (uint32_t d = 0; d < p->device_count && !some; d++)
      some = weir_place_cost(p, n, d) != WEIR_PLACE_NO_KERNEL;
    if (!some)
      return weir_fail(err, WEIR_W3011, NULL, "no device can run node %u %.*s",
                       n, (int)p->names[n].size, p->names[n].data);
  }
  return WEIR_OK;
}

static weir_status fail_bad(weir_error *err) {
  return weir_fail(err, WEIR_W3010, NULL,
                   "a cost or size is negative, or a number names nothing");
}

weir_status weir_place_builder_finish(weir_place_builder *b,
                                      weir_place_problem **out_problem,
                                      weir_error *err) {
  *out_problem = NULL;
  weir_place_problem *p = b->problem;
  assert(p != NULL); /* finished once */
  b->bad |= b->devices.count == 0;
  for (size_t t = 0; !b->failed && t < b->tensor_keeper.count; t++)
    if (b->tensor_keeper.items[t] != WEIR_PLACE_NONE &&
        b->tensor_keeper.items[t] >= b->over_in.count)
      b->bad = true;
  if (!b->failed && b->bad) return fail_bad(err);
  if (!b->failed) bound_bytes(b);
  if (b->failed || !keep_all(p, b)) return weir_fail_memory(err, sizeof *p);
  WEIR_TRY(check_runnable(p, err));
  b->problem = NULL;
  *out_problem = p;
  return WEIR_OK;
}
