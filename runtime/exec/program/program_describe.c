/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/program_describe.h"

#include <stdio.h>

#include "runtime/exec/program/program_internal.h"

static const char *const kLayouts[] = {"plain", "n16", "c8", "c16"};

static bool describe_instr(const weir_program *p, uint32_t i,
                           const weir_writer *out) {
  const weir_instr_spec *s = &p->instrs[i].spec;
  const weir_pvalue *y = s->out_count > 0 && s->out[0] != WEIR_NO_INDEX
                             ? &p->values[s->out[0]]
                             : NULL;
  char text[1400];
  int n =
      snprintf(text, sizeof text, "%u\t%.*s\t%s\t%s\t%s\t%s\t%zu\t%zu\t%s\n", i,
               WEIR_SV(s->node), s->op != NULL ? s->op : "-",
               s->kernel != NULL ? s->kernel : "-",
               s->algorithm != NULL ? s->algorithm : "-",
               y != NULL ? kLayouts[y->layout] : kLayouts[WEIR_LAYOUT_PLAIN],
               y != NULL ? p->values[y->root].offset : 0,
               y != NULL ? y->bytes : 0, s->reason != NULL ? s->reason : "-");
  size_t size = n < 0 ? 0 : (size_t)n;
  if (size >= sizeof text) {
    size = sizeof text - 1;
    text[size - 1] = '\n';
  }
  return out->write(out->self, text, size);
}

bool weir_program_describe(const weir_program *program,
                           const weir_writer *out) {
  for (const weir_program *p = program; p != NULL; p = p->next_part) {
    if (p->device.size > 0 &&
        (!out->write(out->self, "# ", 2) ||
         !out->write(out->self, p->device.data, p->device.size) ||
         !out->write(out->self, "\n", 1)))
      return false;
    for (uint32_t i = 0; i < p->instr_count; i++)
      if (!describe_instr(p, i, out)) return false;
  }
  return true;
}
