/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_figures.h"

#include "placement/report/dump_internal.h"

/* All objectives, and the pipeline where one of its own was asked for. */

static bool write_stage(const weir_place_view *v, const weir_writer *out,
                        uint32_t s) {
  const weir_place_stage *g = &v->figures->stages[s];
  char load[32], memory[32], cap[32];
  int64_t limit = v->problem->devices[g->device].memory_bytes;
  return weir_place_print(
      out, "  stage %-3u %-38.*s load %-10s holds %3u of them, %s%s%s%s\n", s,
      WEIR_SV(v->problem->devices[g->device].name),
      weir_quantity_print_time(g->load_ns, load), g->batches,
      weir_quantity_print_bytes(g->memory_bytes, memory),
      limit == INT64_MAX ? "" : " of ",
      limit == INT64_MAX ? "" : weir_quantity_print_bytes(limit, cap),
      g->memory_bytes > limit ? ": TOO MUCH" : "");
}

static bool write_pipeline(const weir_place_view *v, const weir_writer *out) {
  const weir_place_figures *f = v->figures;
  char period[32], bound[32], all[32];
  double gap = f->period_bound_ns == 0
                   ? 0
                   : 100.0 * (double)(f->period_ns - f->period_bound_ns) /
                         (double)f->period_bound_ns;
  bool ok = weir_place_print(
      out,
      "period %s   lower bound %s (%s)   gap %.1f %%\n"
      "pipeline of %u stages: %u micro-batches in %s, bubble %.1f %%\n",
      weir_quantity_print_time(f->period_ns, period),
      weir_quantity_print_time(f->period_bound_ns, bound), f->period_bound, gap,
      f->stage_count, f->batches, weir_quantity_print_time(f->batches_ns, all),
      100 * f->bubble);
  for (uint32_t s = 0; s < f->stage_count && ok; s++)
    ok = write_stage(v, out, s);
  return ok;
}

bool weir_place_write_figures(const weir_place_view *v,
                              const weir_writer *out) {
  const weir_place_figures *f = v->figures;
  const weir_place_objective *o;
  char text[32];
  if (f == NULL) return true;
  bool ok = weir_place_print(out, "objective %s", f->objective->name);
  for (size_t i = 0; ok && (o = weir_place_objective_at(i)) != NULL; i++)
    if (o->label != NULL)
      ok = weir_place_print(out, "   %s %s", o->label,
                            o->unit == WEIR_PLACE_NS
                                ? weir_quantity_print_time(o->value(f), text)
                                : weir_quantity_print_bytes(o->value(f), text));
  return ok && weir_place_print(out, "\n") &&
         (!f->objective->pipeline || write_pipeline(v, out));
}

void weir_place_write_figures_json(const weir_place_view *v,
                                   weir_json_writer *w) {
  const weir_place_figures *f = v->figures;
  if (f == NULL) return;
  weir_json_key(w, "objectives");
  weir_json_object_begin(w, true);
  weir_json_key_text(w, "chosen", weir_sv_from(f->objective->name));
  const weir_place_objective *o;
  for (size_t i = 0; (o = weir_place_objective_at(i)) != NULL; i++) {
    weir_json_key_int(w, o->key, o->value(f));
    if (o->bound_key != NULL) weir_json_key_int(w, o->bound_key, o->bound(f));
  }
  weir_json_object_end(w);
  weir_json_key(w, "pipeline");
  weir_json_object_begin(w, false);
  weir_json_key_int(w, "microbatches", f->batches);
  weir_json_key_int(w, "total_ns", f->batches_ns);
  weir_json_key_double(w, "bubble", f->bubble);
  weir_json_key(w, "stages");
  weir_json_array_begin(w, false);
  for (uint32_t s = 0; s < f->stage_count; s++) {
    weir_json_object_begin(w, true);
    weir_json_key_text(w, "device",
                       v->problem->devices[f->stages[s].device].name);
    weir_json_key_int(w, "load_ns", f->stages[s].load_ns);
    weir_json_key_int(w, "microbatches", f->stages[s].batches);
    weir_json_key_int(w, "memory_bytes", f->stages[s].memory_bytes);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
  weir_json_object_end(w);
}
