/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/json/json.h"
#include "runtime/base/quantity.h"
#include "runtime/tools/profile/profile.h"

/* A profile as a table and as JSON. */

enum { MOST_NAME = 40, LEAST_NAME = 4, MOST_REASON = 60 };

/* ---- The table */

/* "loop > node": a node within a body has its loop's name before it, most often
 * as the scope of its own, which is left out then. */
static void row_name(const weir_tools_profile *p, const weir_profile_row *row,
                     weir_strbuf *text) {
  weir_sv node = row->node;
  weir_strbuf_clear(text);
  if (row->parent != WEIR_NO_INDEX) {
    weir_sv up = p->sum.rows[row->parent].node;
    weir_strbuf_printf(text, "%.*s > ", WEIR_SV(up));
    if (node.size > up.size && node.data[up.size] == '/' &&
        memcmp(node.data, up.data, up.size) == 0) {
      node.data += up.size + 1;
      node.size -= up.size + 1;
    }
  }
  weir_strbuf_printf(text, "%.*s", WEIR_SV(node));
}

/* At most |most| bytes; of a longer text the end, which tells nodes of one
 * scope apart, or the beginning. No letter is cut in two. */
static weir_sv shorten(weir_sv text, size_t most, bool end, char *room) {
  if (text.size <= most) return text;
  size_t keep = most - 2, from = end ? text.size - keep : 0;
  while (end && from < text.size && (text.data[from] & 0xc0) == 0x80) from++;
  if (end) keep = text.size - from;
  while (!end && keep > 0 && (text.data[keep] & 0xc0) == 0x80) keep--;
  int n = end ? snprintf(room, most + 1, "..%.*s", (int)keep, text.data + from)
              : snprintf(room, most + 1, "%.*s..", (int)keep, text.data);
  return (weir_sv){room, n > 0 ? (size_t)n : 0};
}

typedef struct widths {
  int name, op, kernel;
} widths;

static int wider(int width, size_t size, int most) {
  int n = size > (size_t)most ? most : (int)size;
  return n > width ? n : width;
}

static widths find_widths(const weir_tools_profile *p, weir_strbuf *text) {
  widths w = {LEAST_NAME, 2, 6};
  for (uint32_t i = 0; i < p->order_count; i++) {
    const weir_profile_row *row = &p->sum.rows[p->order[i]];
    row_name(p, row, text);
    w.name = wider(w.name, text->size, MOST_NAME);
    w.op = wider(w.op, row->op.size, 24);
    w.kernel = wider(w.kernel, weir_profile_say(p, row).kernel.size, 32);
  }
  return w;
}

/* A figure of a row, or "-" where there is none. */
static const char *figure(double value, bool known, char text[24]) {
  if (known) snprintf(text, 24, "%.4g", value);
  return known ? text : "-";
}

static void add_row(const weir_tools_profile *p, const weir_profile_row *row,
                    const widths *w, weir_strbuf *name, weir_strbuf *out) {
  char time[WEIR_QUANTITY_TEXT], rate[24], moved[24], peak[24];
  char room[3][MOST_REASON + 1];
  weir_profile_said said = weir_profile_say(p, row);
  row_name(p, row, name);
  weir_sv shown = shorten(weir_strbuf_view(name), MOST_NAME, true, room[0]);
  weir_sv op = shorten(row->op, 24, false, room[1]);
  weir_sv reason = shorten(said.reason, MOST_REASON, false, room[2]);
  snprintf(peak, sizeof peak, "%.1f %%", 100 * said.peak);
  bool timed = said.is_work && row->own_ns > 0;
  weir_strbuf_printf(
      out, "%-*.*s %-*.*s %6" PRId64 " %10s %6.1f %% %9s %8s %7s %-*.*s %.*s\n",
      w->name, WEIR_SV(shown), w->op, WEIR_SV(op), row->calls,
      weir_quantity_print_time(row->own_ns, time), 100 * said.share,
      figure(said.gflops, timed && row->flops > 0, rate),
      figure(said.gb_per_s, timed && row->bytes > 0, moved),
      said.peak >= 0 ? peak : "-", w->kernel, WEIR_SV(said.kernel),
      WEIR_SV(reason));
}

static void add_head(const weir_tools_profile *p, weir_strbuf *out) {
  char step[WEIR_QUANTITY_TEXT], traced[WEIR_QUANTITY_TEXT];
  weir_strbuf_printf(out,
                     "profile of %u step%s, times are medians: a step takes %s",
                     p->sum.steps, p->sum.steps == 1 ? "" : "s",
                     weir_quantity_print_time(weir_profile_step_ns(p), step));
  if (p->plain.count > 0)
    weir_strbuf_printf(out, ", %s with times taken",
                       weir_quantity_print_time(p->sum.step.median_ns, traced));
  weir_strbuf_text(out, "\n");
  if (p->sum.others > 0)
    weir_strbuf_printf(out,
                       "%u step%s of other shapes, or with too many events, "
                       "not in it\n",
                       p->sum.others, p->sum.others == 1 ? " is" : "s are");
}

static double share_of_step(const weir_tools_profile *p, int64_t ns) {
  int64_t step = p->sum.step.median_ns;
  return step > 0 ? (double)ns / (double)step : 0;
}

/* The last lines: what is in no node, and what the figures are shares of. */
static void add_foot(const weir_tools_profile *p, const widths *w,
                     weir_strbuf *out) {
  char time[WEIR_QUANTITY_TEXT], size[WEIR_QUANTITY_TEXT];
  weir_strbuf_printf(
      out, "%-*s %-*s %6s %10s %6.1f %% gaps and waits, when no node ran\n",
      w->name, "in no node", w->op, "-", "",
      weir_quantity_print_time(p->sum.between.median_ns, time),
      100 * share_of_step(p, p->sum.between.median_ns));
  if (p->threads > 1)
    weir_strbuf_printf(out,
                       "%d threads: a node's time is its wall time, however "
                       "many threads worked on it; all nodes' times are "
                       "%.1f %% of a step's\n",
                       p->threads, 100 * share_of_step(p, p->sum.all_ns));
  if (p->devices)
    weir_strbuf_text(out,
                     "nodes on GPUs have times of the GPU's clock; their peak "
                     "is not measured\n");
  weir_strbuf_printf(out, "peak of one core (%s): %.4g GFLOP/s f32, %.4g f64; ",
                     p->peak.isa, p->peak.f32_gflops, p->peak.f64_gflops);
  for (int i = 0; i < WEIR_PEAK_COPIES; i++)
    weir_strbuf_printf(
        out, "%s%.4g GB/s to %s", i > 0 ? ", " : "", p->peak.copies[i].gb_per_s,
        weir_quantity_print_bytes(p->peak.copies[i].bytes, size));
  weir_strbuf_text(out,
                   "; a node's share is of that times its threads, by "
                   "arithmetic or bytes, whichever takes longer\n");
}

weir_status weir_tools_profile_write(const weir_tools_profile *p,
                                     weir_write_fn write, void *self,
                                     weir_error *err) {
  weir_strbuf out, name;
  weir_strbuf_init(&out, p->runtime->env.alloc);
  weir_strbuf_init(&name, p->runtime->env.alloc);
  add_head(p, &out);
  widths w = find_widths(p, &name);
  weir_strbuf_printf(&out, "%-*s %-*s %6s %10s %8s %9s %8s %7s %-*s %s\n",
                     w.name, "node", w.op, "op", "calls", "time", "share",
                     "GFLOP/s", "GB/s", "peak", w.kernel, "kernel", "reason");
  for (uint32_t i = 0; i < p->order_count; i++)
    add_row(p, &p->sum.rows[p->order[i]], &w, &name, &out);
  add_foot(p, &w, &out);
  weir_status s = weir_strbuf_status(&name, err);
  if (s == WEIR_OK) s = weir_strbuf_status(&out, err);
  if (s == WEIR_OK && !write(self, out.data, out.size))
    s = weir_fail(err, WEIR_W5009, NULL, "the profile could not be written");
  weir_strbuf_release(&name);
  weir_strbuf_release(&out);
  return s;
}

/* ---- JSON */

static void write_peak(const weir_peak *peak, weir_json_writer *w) {
  weir_json_key(w, "peak");
  weir_json_object_begin(w, true);
  weir_json_key_text(w, "isa", weir_sv_from(peak->isa));
  weir_json_key_double(w, "f32_gflops", peak->f32_gflops);
  weir_json_key_double(w, "f64_gflops", peak->f64_gflops);
  weir_json_key(w, "copies");
  weir_json_array_begin(w, true);
  for (int i = 0; i < WEIR_PEAK_COPIES; i++) {
    weir_json_object_begin(w, true);
    weir_json_key_int(w, "bytes", peak->copies[i].bytes);
    weir_json_key_double(w, "gb_per_s", peak->copies[i].gb_per_s);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
  weir_json_object_end(w);
}

static void write_names(const weir_tools_profile *p,
                        const weir_profile_row *row, weir_json_writer *w) {
  weir_json_key_text(w, "node", row->node);
  if (row->parent != WEIR_NO_INDEX)
    weir_json_key_text(w, "within", p->sum.rows[row->parent].node);
  if (row->member_count > 0) {
    weir_json_key(w, "nodes");
    weir_json_array_begin(w, true);
    for (uint32_t i = 0; i < row->member_count; i++)
      weir_json_string(w, row->members[i]);
    weir_json_array_end(w);
  }
  weir_json_key_text(w, "op", row->op);
  if (row->device.size > 0) weir_json_key_text(w, "device", row->device);
}

static void write_row(const weir_tools_profile *p, uint32_t at,
                      weir_json_writer *w) {
  const weir_profile_row *row = &p->sum.rows[at];
  weir_profile_said said = weir_profile_say(p, row);
  weir_json_object_begin(w, true);
  weir_json_key_uint(w, "id", at);
  if (row->parent != WEIR_NO_INDEX) weir_json_key_uint(w, "in", row->parent);
  write_names(p, row, w);
  weir_json_key_text(w, "kernel", said.kernel);
  if (row->algorithm.size > 0)
    weir_json_key_text(w, "algorithm", row->algorithm);
  weir_json_key_text(w, "reason", said.reason);
  weir_json_key_int(w, "threads", row->threads);
  weir_json_key_text(w, "clock",
                     weir_sv_from(row->by_device ? "device" : "wall"));
  weir_json_key_int(w, "calls", row->calls);
  weir_json_key_int(w, "time_ns", row->own_ns);
  weir_json_key_int(w, "with_bodies_ns", row->time.median_ns);
  weir_json_key_uint(w, "spread_permille", row->time.spread_permille);
  weir_json_key_double(w, "share", said.share);
  weir_json_key_int(w, "flops", row->flops);
  weir_json_key_int(w, "bytes", row->bytes);
  weir_json_key_double(w, "gflops", said.gflops);
  weir_json_key_double(w, "gb_per_s", said.gb_per_s);
  if (said.peak >= 0) weir_json_key_double(w, "peak_share", said.peak);
  weir_json_object_end(w);
}

void weir_tools_profile_json(const weir_tools_profile *p, weir_json_writer *w) {
  weir_json_object_begin(w, false);
  weir_json_key_uint(w, "steps", p->sum.steps);
  weir_json_key_uint(w, "left_out", p->sum.others);
  weir_json_key_int(w, "step_ns", p->sum.step.median_ns);
  if (p->plain.count > 0)
    weir_json_key_int(w, "plain_step_ns", p->plain.median_ns);
  weir_json_key_int(w, "in_no_node_ns", p->sum.between.median_ns);
  weir_json_key_int(w, "in_nodes_ns", p->sum.all_ns);
  weir_json_key_int(w, "threads", p->threads);
  write_peak(&p->peak, w);
  weir_json_key(w, "nodes");
  weir_json_array_begin(w, false);
  for (uint32_t i = 0; i < p->order_count; i++) write_row(p, p->order[i], w);
  weir_json_array_end(w);
  weir_json_object_end(w);
}
