/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/device/name.h"
#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/mesh/mesh.h"
#include "runtime/graph/mesh/mesh_read.h"
#include "runtime/graph/mesh/mesh_spec.h"

/* The sections `mesh` and `layout`: read, checked, and put into the graph. All
 * errors that need no types are found here, at the line of the section;
 * weir_mesh_check finds those of values once the graph is whole. */

const char *const weir_mesh_keys[] = {"axes", "devices", NULL};

/* ---- Axes */

static bool read_axes(weir_loader *l, const weir_yaml *y, weir_mesh *mesh) {
  uint64_t devices = 1;
  if (!weir_want_kind(l, y, WEIR_YAML_MAP, "axes")) return false;
  if (y->count == 0 || y->count > WEIR_MESH_AXES)
    return weir_report(l, WEIR_W3055, &y->mark, "%u axes, must be 1 to %d",
                       y->count, WEIR_MESH_AXES);
  for (uint32_t i = 0; i < y->count; i++) {
    const weir_yaml_entry *e = &y->entries[i];
    int64_t size = 0;
    if (!weir_yaml_int(e->value, &size) || size < 1)
      return weir_report(l, WEIR_W3055, &e->value->mark,
                         "the size of axis %.*s must be an integer of 1 or "
                         "more",
                         WEIR_SV(e->key));
    /* Both factors are bounded before they are multiplied: no overflow. */
    devices = size > WEIR_MESH_DEVICES ? WEIR_MESH_DEVICES + 1
                                       : devices * (uint64_t)size;
    if (devices > WEIR_MESH_DEVICES)
      return weir_report(l, WEIR_W3055, &e->value->mark,
                         "the mesh has more than %d devices",
                         WEIR_MESH_DEVICES);
    mesh->axes[i] = (weir_mesh_axis){e->key, (uint32_t)size, 1};
  }
  mesh->axis_count = y->count;
  mesh->device_count = (uint32_t)devices;
  for (uint32_t i = mesh->axis_count; i-- > 1;)
    mesh->axes[i - 1].stride = mesh->axes[i].stride * mesh->axes[i].size;
  return true;
}

/* ---- Devices */

typedef struct device_list {
  weir_sv *names;
  uint32_t count, capacity;
} device_list;

static bool add_device(weir_loader *l, device_list *list, const char *text) {
  size_t size = strlen(text);
  char *copy = weir_arena_string(l->arena, text, size);
  if (copy == NULL) return weir_report_memory(l);
  /* Names past the mesh's places are counted only, for the message. */
  if (list->count < list->capacity)
    list->names[list->count] = (weir_sv){copy, size};
  list->count++;
  return true;
}

/* Every device that |y| names: ranges of tasks, then of indices. */
static bool add_devices(weir_loader *l, device_list *list, const weir_yaml *y) {
  weir_device_name name;
  weir_error err = WEIR_ERROR_INIT;
  char text[128];
  if (!weir_want_kind(l, y, WEIR_YAML_SCALAR, "a device of the mesh"))
    return false;
  if (weir_device_name_parse(y->text, &name, NULL, &err) != WEIR_OK)
    return weir_report(l, WEIR_W1115, &y->mark, "%s", err.message);
  weir_index_range tasks = name.task, indices = name.index;
  int64_t all = (int64_t)(tasks.last - tasks.first + 1) *
                (indices.last - indices.first + 1);
  if (all > WEIR_MESH_DEVICES)
    return weir_report(l, WEIR_W3054, &y->mark,
                       "%" PRId64 " devices, at most %d", all,
                       WEIR_MESH_DEVICES);
  for (int32_t t = tasks.first; t <= tasks.last; t++)
    for (int32_t i = indices.first; i <= indices.last; i++) {
      name.task = (weir_index_range){t, t};
      name.index = (weir_index_range){i, i};
      weir_device_name_print(&name, text, sizeof text);
      if (!add_device(l, list, text)) return false;
    }
  return true;
}

/* Without `devices`, places are names that any machine has: a graph with a mesh
 * runs where there is one processor. */
static bool logical_devices(weir_loader *l, device_list *list) {
  char text[64];
  for (uint32_t i = 0; i < list->capacity; i++) {
    snprintf(text, sizeof text, "/device:CPU:%" PRIu32, i);
    if (!add_device(l, list, text)) return false;
  }
  return true;
}

static bool named_devices(weir_loader *l, device_list *list,
                          const weir_yaml *y) {
  if (y->kind != WEIR_YAML_LIST) return add_devices(l, list, y);
  for (uint32_t i = 0; i < y->count && list->count <= WEIR_MESH_DEVICES; i++)
    if (!add_devices(l, list, y->items[i])) return false;
  return true;
}

static bool read_devices(weir_loader *l, const weir_yaml *y, weir_mesh *mesh) {
  device_list list = {.capacity = mesh->device_count};
  list.names = weir_arena_array(l->arena, list.capacity, sizeof *list.names);
  if (list.names == NULL) return weir_report_memory(l);
  mesh->devices = list.names;
  mesh->logical = y == NULL;
  if (y == NULL) return logical_devices(l, &list);
  if (!named_devices(l, &list, y)) return false;
  if (list.count != mesh->device_count)
    return weir_report(
        l, WEIR_W3054, &y->mark,
        "%" PRIu32 " device%s named, the mesh has %" PRIu32 " places",
        list.count, list.count == 1 ? " is" : "s are", mesh->device_count);
  for (uint32_t i = 1; i < list.count; i++)
    for (uint32_t k = 0; k < i; k++)
      if (weir_sv_equal(list.names[i], list.names[k]))
        return weir_report(l, WEIR_W3054, &y->mark,
                           "%.*s is named twice, for places %" PRIu32
                           " and %" PRIu32,
                           WEIR_SV(list.names[i]), k, i);
  return true;
}

/* ---- Layout */

static weir_sv dim_at(const void *self, size_t i) {
  const weir_module *m = self;
  return m->consts.items[m->param_count + i].name;
}

static weir_sv axis_at(const void *self, size_t i) {
  return ((const weir_mesh *)self)->axes[i].name;
}

static bool read_axis(weir_loader *l, const weir_yaml *y, const weir_mesh *mesh,
                      uint32_t *out) {
  if (!weir_want_kind(l, y, WEIR_YAML_SCALAR, "the axis of a dimension"))
    return false;
  for (*out = 0; *out < mesh->axis_count; ++*out)
    if (weir_sv_equal(mesh->axes[*out].name, y->text)) return true;
  weir_report_begin(l, WEIR_W3051, &y->mark, "the mesh has no axis '%.*s'",
                    WEIR_SV(y->text));
  weir_report_nearest(l, y->text, mesh->axis_count, axis_at, mesh);
  return weir_report_send(l);
}

static bool read_dim(weir_loader *l, const weir_module *m,
                     const weir_yaml_entry *e, const weir_mesh *mesh,
                     weir_mesh_dim *out) {
  uint32_t i = weir_map_get(&m->const_names, e->key);
  if (i == WEIR_MAP_NONE || i < m->param_count) {
    weir_report_begin(l, WEIR_W3050, &e->key_mark,
                      i == WEIR_MAP_NONE
                          ? "dims has no dimension '%.*s'"
                          : "%.*s is a param; a layout takes names of dims",
                      WEIR_SV(e->key));
    weir_report_nearest(l, e->key, m->consts.count - m->param_count, dim_at, m);
    return weir_report_send(l);
  }
  const weir_const *c = &m->consts.items[i].value;
  *out = (weir_mesh_dim){.name = e->key,
                         .symbol = c->dim.name,
                         .size = c->dim.value,
                         .mark = e->key_mark};
  if (!read_axis(l, e->value, mesh, &out->axis)) return false;
  const weir_mesh_axis *axis = &mesh->axes[out->axis];
  if (!weir_dim_known(c->dim))
    return weir_report(l, WEIR_W3052, &e->key_mark,
                       "the size of %.*s is not known, and has to be to lay it "
                       "over axis %.*s; give it in dims or with -p",
                       WEIR_SV(e->key), WEIR_SV(axis->name));
  if (out->size == 0 || out->size % axis->size != 0)
    return weir_report(l, WEIR_W3052, &e->key_mark,
                       "%.*s is %" PRId64 ", no multiple of %" PRIu32
                       ", the size of axis %.*s",
                       WEIR_SV(e->key), out->size, axis->size,
                       WEIR_SV(axis->name));
  return true;
}

static bool read_layout(weir_loader *l, const weir_module *m,
                        const weir_yaml *y, weir_mesh *mesh) {
  if (!weir_want_kind(l, y, WEIR_YAML_MAP, "layout")) return false;
  weir_mesh_dim *dims = weir_arena_array(l->arena, y->count, sizeof *dims);
  if (dims == NULL) return weir_report_memory(l);
  bool ok = true;
  for (uint32_t i = 0; i < y->count && weir_loader_going(l); i++)
    ok = read_dim(l, m, &y->entries[i], mesh, &dims[i]) && ok;
  mesh->dims = dims;
  mesh->dim_count = y->count;
  return ok;
}

bool weir_mesh_read(weir_loader *l, const weir_module *m) {
  const weir_yaml *y = weir_yaml_get(m->root, "mesh");
  const weir_yaml *layout = weir_yaml_get(m->root, "layout");
  if (y == NULL && layout != NULL)
    return weir_report(l, WEIR_W3055, &layout->mark,
                       "a layout needs a mesh: mesh: {axes: {row: 2}}");
  if (y == NULL) return true;
  if (!weir_want_kind(l, y, WEIR_YAML_MAP, "mesh") ||
      !weir_check_keys(l, y, "mesh", weir_mesh_keys, true))
    return false;
  weir_mesh *mesh = weir_arena_array(l->arena, 1, sizeof *mesh);
  if (mesh == NULL) return weir_report_memory(l);
  mesh->mark = y->mark;
  const weir_yaml *axes = weir_yaml_get(y, "axes");
  if (axes == NULL)
    return weir_report(l, WEIR_W3055, &y->mark, "the mesh has no `axes`");
  if (!read_axes(l, axes, mesh) ||
      !read_devices(l, weir_yaml_get(y, "devices"), mesh) ||
      (layout != NULL && !read_layout(l, m, layout, mesh)))
    return false;
  weir_graph_builder_graph(l->builder)->mesh = mesh;
  return true;
}

bool weir_mesh_check(weir_loader *l) {
  const weir_graph *g = weir_graph_builder_graph(l->builder);
  weir_error err = WEIR_ERROR_INIT;
  if (g->mesh == NULL) return true;
  for (weir_value_id v = 0; v < g->value_count; v++) {
    weir_mesh_spec spec;
    if (weir_mesh_spec_of(g, v, &spec, &err) != WEIR_OK)
      return weir_report_error(l, &err);
  }
  return true;
}
