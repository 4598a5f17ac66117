/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/machine/machine.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/onednn/onednn_probe.h"
#include "kernels/profile.h"
#include "kernels/tune/tuned.h"
#include "runtime/api/weir_internal.h"
#include "runtime/exec/measure/peak.h"
#include "runtime/exec/measure/peak_cores.h"
#include "runtime/tools/tools.h"

/* What `weir doctor` says about the machine as kernels see it. */

typedef struct machine_facts {
  weir_tools_fact_fn fact;
  void *self;
} machine_facts;

enum { TEXT = 512 };

static void say(const machine_facts *f, const char *name, const char *value) {
  f->fact(f->self, name, value);
}

/* Adds |more| to |text|, after |between| unless it is the first. */
static void add(char text[TEXT], const char *between, const char *more) {
  size_t used = strlen(text);
  snprintf(text + used, TEXT - used, "%s%s", used > 0 ? between : "", more);
}

/* Those that --isa takes here, the best one first. */
static void say_sets(const machine_facts *f) {
  char text[TEXT] = "";
  for (int i = 0; weir_isa_at(i) != NULL; i++)
    add(text, ", ", weir_isa_at(i)->name);
  say(f, "sets", text);
}

/* "gemm:jit" and the like are code of their own; "ref" is plain loops. */
static void say_primitives(const machine_facts *f) {
  char has[TEXT] = "", lacks[TEXT] = "";
  weir_onednn_primitive p;
  for (size_t i = 0; weir_onednn_probe(i, &p); i++) {
    char one[sizeof p.name + sizeof p.impl + 2];
    snprintf(one, sizeof one, "%s %s", p.name, p.impl);
    if (p.impl[0] != '\0')
      add(has, ", ", one);
    else
      add(lacks, ", ", p.name);
  }
  say(f, "onednn set", weir_onednn_set());
  say(f, "onednn has", has[0] != '\0' ? has : "none of the primitives");
  say(f, "onednn lacks",
      lacks[0] != '\0' ? lacks : "none of the primitives asked for");
}

/* ---- Peaks */

static void say_peak(const machine_facts *f, const char *name, double f32,
                     double f64) {
  char text[TEXT];
  snprintf(text, sizeof text, "%.1f GFLOP/s f32, %.1f f64", f32, f64);
  say(f, name, text);
}

/* "L2": the first cache with room for |bytes|. */
static const char *level_of(const weir_machine *m, int64_t bytes) {
  static const char *const kLevels[] = {"L1", "L2", "L3", "memory"};
  int level = 0;
  while (level < WEIR_MACHINE_CACHES && m->caches[level].bytes < bytes) level++;
  return kLevels[level];
}

static void say_copies(const machine_facts *f, const weir_machine *m,
                       const weir_peak *peak) {
  for (int i = 0; i < WEIR_PEAK_COPIES; i++) {
    const weir_peak_copy *copy = &peak->copies[i];
    char name[32], text[64];
    snprintf(name, sizeof name, "copy %dK", (int)(copy->bytes >> 10));
    snprintf(text, sizeof text, "%.1f GB/s read and written, in %s",
             copy->gb_per_s, level_of(m, copy->bytes));
    say(f, name, text);
  }
}

static weir_status say_peaks(const machine_facts *f, const weir_env *env,
                             weir_error *err) {
  weir_machine m;
  weir_peak peak;
  weir_peak_cores all;
  char name[32];
  weir_machine_read(&m);
  WEIR_TRY(weir_peak_measure(env, env->profile, &peak, err));
  WEIR_TRY(weir_peak_measure_cores(env, env->profile, m.threads, &all, err));
  say_peak(f, "peak 1", peak.f32_gflops, peak.f64_gflops);
  snprintf(name, sizeof name, "peak %d", all.threads);
  if (all.threads > 1) say_peak(f, name, all.f32_gflops, all.f64_gflops);
  say_copies(f, &m, &peak);
  return WEIR_OK;
}

size_t weir_tools_tuned(const weir_runtime *runtime) {
  return runtime->env.tuned != NULL ? weir_tuned_count(runtime->env.tuned) : 0;
}

weir_status weir_tools_machine(const weir_runtime *runtime, bool measure,
                               weir_tools_fact_fn fact, void *self,
                               weir_error *err) {
  const machine_facts f = {fact, self};
  char text[WEIR_PROFILE_TEXT];
  say_sets(&f);
  say(&f, "profile", weir_profile_text(runtime->env.profile, text));
  say_primitives(&f);
  return measure ? say_peaks(&f, &runtime->env, err) : WEIR_OK;
}
