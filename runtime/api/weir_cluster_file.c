/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/weir_cluster_file.h"

#include <string.h>

#include "runtime/base/yaml/yaml.h"

/* A cluster from a file of its own: what stands below `cluster:` in a graph, or
 * a map with that one key. */

enum { CLUSTER_FILE_BYTES = 1 << 20 };

static bool is_file(const char *text) {
  size_t n = text == NULL ? 0 : strlen(text);
  return (n > 5 && strcmp(text + n - 5, ".yaml") == 0) ||
         (n > 4 && strcmp(text + n - 4, ".yml") == 0);
}

static weir_status parse(plan_call *c, weir_sv text, const char *path,
                         weir_error *err) {
  const weir_yaml *root = NULL;
  WEIR_TRY(weir_yaml_parse(text, path, NULL, &c->arena, NULL, &root, err));
  if (root == NULL || root->kind != WEIR_YAML_MAP)
    return weir_fail(err, WEIR_W3020, root == NULL ? NULL : &root->mark,
                     "cluster: %.200s: expected a map of jobs", path);
  const weir_yaml *section = weir_yaml_get(root, "cluster");
  c->request.cluster_section =
      section != NULL && root->count == 1 ? section : root;
  return WEIR_OK;
}

weir_status weir_plan_cluster_read(plan_call *c, weir_runtime *runtime,
                                   weir_error *err) {
  const weir_fs *fs = runtime->env.fs;
  const char *path = c->opts.cluster;
  weir_file file = {0};
  if (!is_file(path)) return WEIR_OK;
  WEIR_TRY(
      fs->read(fs->self, NULL, path, CLUSTER_FILE_BYTES, false, &file, err));
  weir_sv text = {(const char *)file.bytes.data, file.bytes.size};
  weir_status s = parse(c, text, path, err);
  fs->close(fs->self, &file);
  return s;
}
