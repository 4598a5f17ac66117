/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_over.h"

#include <string.h>

/* Writing over values that die: an update of a variable reads its old value and
 * a gradient, both for the last time, and so needs no third buffer.
 *
 * An instruction may write over an external, the *host*, if it is the last one
 * that touches it, reads each of its elements before it writes that element
 * (weir_kernel_def.over_inputs) or does not read it at all, and writes as many
 * bytes of the same shape. Whether it is the last is a matter of order, and the
 * order of instructions in the list is one that keeps to the data, so an edge
 * from each of the others to it makes it so and closes no circle.
 *
 * A value between a feed and a variable's new value (a mean of gradients) is
 * written over the feed as well; it is then the feed's memory that is touched.
 *
 * Cost: O(instructions) for each variable and feed. */

static const weir_pvalue *root_of(const weir_compiler *c, uint32_t value) {
  const weir_pvalue *items = c->builder->values.items;
  return value == WEIR_NO_INDEX ? NULL : &items[items[value].root];
}

static bool is_at(const weir_compiler *c, uint32_t value, uint32_t external) {
  const weir_pvalue *root = root_of(c, value);
  return root != NULL && root->storage == WEIR_STORAGE_EXTERNAL &&
         root->external == external;
}

/* How often |external| is among the |count| values. */
static uint32_t count_at(const weir_compiler *c, const uint32_t *values,
                         uint32_t count, uint32_t external) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; i++) n += is_at(c, values[i], external);
  return n;
}

static bool touches(const weir_compiler *c, uint32_t instr, uint32_t external) {
  const weir_instr_spec *s = &c->builder->instrs.items[instr].spec;
  return count_at(c, s->in, s->in_count, external) > 0 ||
         count_at(c, s->out, s->out_count, external) > 0;
}

static uint32_t last_to_touch(const weir_compiler *c, uint32_t external) {
  for (size_t i = c->builder->instrs.count; i-- > 0;)
    if (touches(c, (uint32_t)i, external)) return (uint32_t)i;
  return WEIR_NO_INDEX;
}

/* The output of |instr| that is written to |external|, or WEIR_NO_INDEX. */
static uint32_t output_at(const weir_compiler *c, uint32_t instr,
                          uint32_t external) {
  const weir_instr_spec *s = &c->builder->instrs.items[instr].spec;
  for (uint32_t k = 0; k < s->out_count; k++)
    if (is_at(c, s->out[k], external)) return k;
  return WEIR_NO_INDEX;
}

static bool same_shape(const weir_pvalue *a, const weir_pvalue *b) {
  return a->bytes == b->bytes && a->dtype == b->dtype && a->rank == b->rank &&
         a->layout == b->layout &&
         memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static uint32_t last_to_write(const weir_compiler *c, uint32_t external) {
  for (size_t i = c->builder->instrs.count; i-- > 0;)
    if (output_at(c, (uint32_t)i, external) != WEIR_NO_INDEX)
      return (uint32_t)i;
  return WEIR_NO_INDEX;
}

/* Whether output |k| of |instr| may lie where |external|, of value |host|, is,
 * as far as the instruction itself goes. */
static bool writes_well(const weir_compiler *c, uint32_t instr, uint32_t k,
                        uint32_t host, uint32_t external) {
  const weir_instr_spec *s = &c->builder->instrs.items[instr].spec;
  if (s->body_count > 0 || s->async || root_of(c, host) == NULL) return false;
  if (!same_shape(root_of(c, host), root_of(c, s->out[k]))) return false;
  return s->over_inputs || count_at(c, s->in, s->in_count, external) == 0;
}

/* Orders all that touch |external| before |instr|. */
static weir_status order_before(weir_compiler *c, uint32_t instr,
                                uint32_t external, weir_error *err) {
  weir_instr_spec *s = &c->builder->instrs.items[instr].spec;
  uint32_t count = s->after_count;
  for (uint32_t i = 0; i < instr; i++) count += touches(c, i, external);
  if (count == s->after_count) return WEIR_OK;
  uint32_t *after = weir_arena_array(c->arena, count, sizeof *after);
  if (after == NULL) return weir_fail_memory(err, count * sizeof *after);
  if (s->after_count > 0)
    memcpy(after, s->after, s->after_count * sizeof *after);
  count = s->after_count;
  for (uint32_t i = 0; i < instr; i++)
    if (touches(c, i, external)) after[count++] = i;
  s->after = after;
  s->after_count = count;
  return WEIR_OK;
}

/* The program's value of feed |k|; WEIR_NO_INDEX: nothing reads it, or it is
 * not the host's memory. */
static uint32_t fed_value(const weir_compiler *c, uint32_t k) {
  const weir_fed_at *at = c->request->fed_at;
  if (at != NULL && at[k].on_gpu) return WEIR_NO_INDEX;
  return c->feeds[k] == WEIR_NO_VALUE ? WEIR_NO_INDEX : c->values[c->feeds[k]];
}

/* A value that the last reader of feed |k| makes takes its memory. */
static weir_status pass_on(weir_compiler *c, uint32_t k, weir_error *err) {
  uint32_t host = fed_value(c, k), last = last_to_touch(c, k);
  if (host == WEIR_NO_INDEX || last == WEIR_NO_INDEX) return WEIR_OK;
  const weir_instr_spec *s = &c->builder->instrs.items[last].spec;
  if (s->out_count != 1 || s->out[0] == WEIR_NO_INDEX ||
      root_of(c, s->out[0])->storage != WEIR_STORAGE_TEMP ||
      count_at(c, s->in, s->in_count, k) == 0 ||
      !writes_well(c, last, 0, host, k))
    return WEIR_OK;
  WEIR_TRY(order_before(c, last, k, err));
  weir_program_set_external(c->builder, s->out[0], k);
  return WEIR_OK;
}

/* The feed that |use|'s new value may take, which no other takes. */
static uint32_t find_feed(const weir_compiler *c, uint32_t writer, uint32_t out,
                          const bool *taken) {
  const weir_instr_spec *s = &c->builder->instrs.items[writer].spec;
  for (uint32_t k = 0; k < c->request->feed_count; k++)
    if (!taken[k] && fed_value(c, k) != WEIR_NO_INDEX &&
        count_at(c, s->in, s->in_count, k) > 0 &&
        last_to_touch(c, k) == writer &&
        writes_well(c, writer, out, fed_value(c, k), k))
      return k;
  return WEIR_NO_INDEX;
}

static uint32_t read_value(const weir_compiler *c, const weir_var_use *use) {
  const weir_pvalue *items = c->builder->values.items;
  for (uint32_t v = 0; v < c->builder->values.count; v++)
    if (items[v].storage == WEIR_STORAGE_EXTERNAL &&
        items[v].external == use->read)
      return v;
  return WEIR_NO_INDEX;
}

static weir_status find_hosts(weir_compiler *c, weir_var_use *use, bool *taken,
                              weir_error *err) {
  uint32_t writer = last_to_write(c, use->write);
  if (writer == WEIR_NO_INDEX) return WEIR_OK;
  uint32_t out = output_at(c, writer, use->write);
  uint32_t last = last_to_touch(c, use->read);
  if ((last == WEIR_NO_INDEX || last <= writer) &&
      writes_well(c, writer, out, read_value(c, use), use->read)) {
    use->over_own = true;
    WEIR_TRY(order_before(c, writer, use->read, err));
  }
  use->over_feed = find_feed(c, writer, out, taken);
  if (use->over_feed == WEIR_NO_INDEX) return WEIR_OK;
  taken[use->over_feed] = true;
  return order_before(c, writer, use->over_feed, err);
}

weir_status weir_compile_over(weir_compiler *c, weir_error *err) {
  const weir_compile_request *r = c->request;
  if (!r->options.overwrite || !c->writes || c->partition != NULL)
    return WEIR_OK;
  bool *taken = weir_arena_array(c->arena, r->feed_count, sizeof *taken);
  if (taken == NULL && r->feed_count > 0)
    return weir_fail_memory(err, r->feed_count);
  for (uint32_t k = 0; k < r->feed_count; k++) WEIR_TRY(pass_on(c, k, err));
  for (uint32_t i = 0; i < c->var_count; i++)
    if (c->vars[i].write != WEIR_NO_INDEX && !c->vars[i].elsewhere)
      WEIR_TRY(find_hosts(c, &c->vars[i], taken, err));
  return WEIR_OK;
}
