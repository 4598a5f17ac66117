/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/base/diag/diag_print.h"
#include "runtime/base/env_system.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/load/load.h"
#include "runtime/train/data/data_source.h"

/* Loads every *.weir.yaml of a folder and compares the reports with the
 * file's first line,
 *
 *   # expect: W1102 3:8, W1103 4:2
 *
 * (all errors, in the order of reports). `ok` expects none. With a file in
 * place of a folder it prints the diagnostics and, if there are none, the
 * nodes with their types. */

typedef struct found {
  char text[1024];
  const char *source;
  int count;
} found;

static bool write_out(void *self, const char *data, size_t size) {
  return fwrite(data, 1, size, self) == size;
}

static weir_sv source_of(void *self, const char *file) {
  (void)file;
  return weir_sv_from(self);
}

static void collect(void *self, const weir_diag *diag) {
  found *f = self;
  size_t n = strlen(f->text);
  if (diag->severity != WEIR_SEVERITY_ERROR) return;
  snprintf(f->text + n, sizeof f->text - n, "%s%s %u:%u", n > 0 ? ", " : "",
           diag->error.id, diag->error.line, diag->error.col);
  f->count++;
}

static void print(void *self, const weir_diag *diag) {
  found *f = self;
  weir_diag_printer printer = {.format = WEIR_DIAG_HUMAN,
                               .out = {stdout, write_out},
                               .source = source_of,
                               .source_self = (void *)(uintptr_t)f->source};
  weir_diag_print(&printer, diag);
  collect(self, diag);
}

static char *read_text(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char *text = calloc(1, *size + 1);
  if (text != NULL && fread(text, 1, *size, file) != *size) text[0] = '\0';
  fclose(file);
  return text;
}

static void print_graph(const weir_graph *g) {
  char type[256];
  for (uint32_t i = 0; i < g->node_count; i++) {
    const weir_node *n = &g->nodes[i];
    printf("%.*s = %s(", WEIR_SV(n->name), n->op->name);
    for (uint32_t k = 0; k < n->input_count; k++) {
      const weir_value *v = &g->values[n->inputs[k]];
      printf("%s%.*s:%u", k > 0 ? ", " : "", WEIR_SV(g->nodes[v->node].name),
             v->port);
    }
    printf(")%s%.*s", n->device.size > 0 ? " @ " : "", WEIR_SV(n->device));
    for (uint32_t k = 0; k < n->output_count; k++)
      printf(" %s",
             weir_graph_type_text(g, n->first_output + k, type, sizeof type));
    printf("\n");
  }
}

static weir_status load(const char *path, const weir_diag_sink *sink,
                        weir_graph **graph, weir_error *err) {
  weir_load_options options = {.registry = weir_builtin_registry(),
                               .sink = sink,
                               .data_form = weir_source_form};
  return weir_graph_load(weir_env_system(), path, &options, graph, err);
}

static int show(const char *path) {
  size_t size;
  char *text = read_text(path, &size);
  if (text == NULL) return 2;
  found f = {.source = text};
  weir_diag_sink sink = {&f, print};
  weir_graph *graph = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = load(path, &sink, &graph, &err);
  if (s == WEIR_OK) print_graph(graph);
  if (s != WEIR_OK && f.count == 0) printf("%s %s\n", err.id, err.message);
  weir_graph_unref(graph);
  free(text);
  return s != WEIR_OK;
}

static int check(const char *path, const char *name) {
  size_t size;
  char *text = read_text(path, &size), want[1024] = "";
  if (text == NULL) return 1;
  found f = {0};
  weir_diag_sink sink = {&f, collect};
  weir_graph *graph = NULL;
  weir_error err = WEIR_ERROR_INIT;
  sscanf(text, "# expect: %1023[^\n]", want);
  weir_status s = load(path, &sink, &graph, &err);
  if (s == WEIR_OK) snprintf(f.text, sizeof f.text, "ok");
  if (s != WEIR_OK && f.count == 0)
    snprintf(f.text, sizeof f.text, "%s %u:%u unreported", err.id, err.line,
             err.col);
  int bad = strcmp(f.text, want) != 0;
  if (bad)
    printf("%s: expected '%s', got '%s' (%s)\n", name, want, f.text,
           err.message);
  weir_graph_unref(graph);
  free(text);
  return bad;
}

int main(int argc, char **argv) {
  DIR *dir = argc > 1 ? opendir(argv[1]) : NULL;
  if (dir == NULL) return argc > 1 ? show(argv[1]) : 2;
  int files = 0, bad = 0;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    char path[4096];
    size_t n = strlen(e->d_name);
    if (n < 10 || strcmp(e->d_name + n - 10, ".weir.yaml") != 0) continue;
    snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
    files++;
    bad += check(path, e->d_name);
  }
  closedir(dir);
  printf("%d graphs, %d not as expected\n", files, bad);
  return bad > 0 || files < 60;
}
