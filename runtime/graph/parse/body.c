/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/body.h"

#include <assert.h>

#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/params.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/forms.h"
#include "runtime/graph/parse/items.h"
#include "runtime/graph/parse/long_form.h"

/* Maps of nodes: every entry becomes an item. Bodies of repeats and forms are
 * parsed by the same loop, from a list of those still to do, so nesting costs
 * no stack. */

typedef struct body_job {
  const weir_yaml *nodes;
  weir_body *body;
  weir_form *form; /* NULL: a repeat's */
  uint32_t part;   /* which body of the form */
} body_job;

/* One call of weir_body_add_nodes. */
typedef struct node_walk {
  weir_loader *loader;
  weir_module *module;
  const weir_block *block; /* NULL: the module's own nodes */
  WEIR_VEC(body_job) jobs;
} node_walk;

bool weir_body_begin(weir_loader *l, weir_body *body, uint32_t capacity) {
  weir_map_init(&body->names, l->alloc);
  body->capacity = capacity;
  body->items = weir_arena_array(&l->work, capacity, sizeof *body->items);
  /* Only large bodies are worth the room. */
  bool ok = body->items != NULL &&
            (capacity < 64 || weir_map_reserve(&body->names, capacity));
  return ok || weir_report_memory(l);
}

static const weir_mark *mark_of(const weir_body *body, const weir_block *block,
                                uint32_t code) {
  uint32_t i = code & ~WEIR_BIND_KIND;
  switch (code & WEIR_BIND_KIND) {
    case WEIR_BIND_INPUT:
      return body->ports != NULL ? &body->ports[i].mark
                                 : &block->inputs[i].mark;
    case WEIR_BIND_ATTR:
      return &block->attrs[i].mark;
    case WEIR_BIND_RESULT: {
      const weir_item_result *r = &body->results.items[i];
      return &body->items[r->item].names[r->port].mark;
    }
    default:
      return &body->items[i].names[0].mark;
  }
}

static bool refuse_twice(weir_loader *l, const weir_body_name *name,
                         const weir_mark *first) {
  weir_report_begin(l, WEIR_W1104, name->mark, "%.*s is defined twice",
                    WEIR_SV(name->name));
  weir_diag_add_label(&l->diag, first, "first here");
  return weir_report_send(l);
}

bool weir_body_bind(weir_loader *l, const weir_module *m,
                    const weir_block *block, weir_body *body,
                    const weir_body_name *name) {
  uint32_t before;
  const weir_named_const *c = /* blocks and bodies may hide params */
      block == NULL && body->ports == NULL ? weir_module_const(m, name->name)
                                           : NULL;
  if (c != NULL) return refuse_twice(l, name, &c->mark);
  if (!weir_map_put(&body->names, name->name, name->code, &before))
    return weir_report_memory(l);
  if (before == WEIR_MAP_NONE) return true;
  return refuse_twice(l, name, mark_of(body, block, before));
}

bool weir_body_declare(weir_loader *l, const weir_module *m,
                       const weir_block *block, weir_body *body) {
  uint32_t index = body->count - 1;
  const weir_item *item = &body->items[index];
  bool ok = true;
  for (uint32_t i = 0; i < item->name_count; i++) {
    const weir_item_name *name = &item->names[i];
    if (name->subscripts != NULL) {
      body->has_repeat = true; /* needs the table of rounds */
      continue;
    }
    uint32_t code = WEIR_BIND_ITEM | index;
    if (item->name_count > 1) {
      weir_item_result r = {index, i};
      code = WEIR_BIND_RESULT | (uint32_t)body->results.count;
      if (!weir_vec_push(l->alloc, &body->results, r))
        return weir_report_memory(l);
    }
    weir_body_name bound = {name->name, &name->mark, code};
    ok = weir_body_bind(l, m, block, body, &bound) && ok;
  }
  return ok;
}

static bool add_repeat(node_walk *w, const weir_yaml *y, weir_item *item) {
  weir_loader *l = w->loader;
  body_job job = {.nodes = weir_yaml_get(y, "nodes")};
  job.body = item->repeat->body =
      weir_arena_array(&l->work, 1, sizeof *job.body);
  if (job.body == NULL || !weir_vec_push(l->alloc, &w->jobs, job))
    return weir_report_memory(l);
  return true;
}

static bool add_form(node_walk *w, const weir_yaml *y, const char *key,
                     weir_item *item) {
  weir_loader *l = w->loader;
  if (!weir_item_form(l, w->module, w->block, y, key, item)) return false;
  weir_form *form = item->form;
  for (uint32_t k = 0; k < form->body_count; k++) {
    body_job job = {form->nodes[k], &form->bodies[k], form, k};
    if (!weir_vec_push(l->alloc, &w->jobs, job)) return weir_report_memory(l);
  }
  return true;
}

/* Whether the calls of |body| are too many to keep their trees. */
static bool is_large(const node_walk *w, const weir_body *body) {
  enum { LARGE = 1 << 16 };
  return body == &w->loader->main_body && w->module == w->loader->main &&
         body->capacity >= LARGE;
}

static bool parse_item(node_walk *w, const weir_yaml_entry *e,
                       const weir_body *body, weir_item *item) {
  weir_loader *l = w->loader;
  weir_module *m = w->module;
  const weir_block *block = w->block;
  const weir_yaml *y = e->value;
  if (y->kind == WEIR_YAML_SCALAR)
    return is_large(w, body) ? weir_item_call_briefly(l, m, y, item)
                             : weir_item_call(l, m, block, y, item);
  if (!weir_want_kind(l, y, WEIR_YAML_MAP, "a node")) return false;
  const char *form = weir_form_key(y);
  if (form != NULL) return add_form(w, y, form, item);
  if (weir_yaml_get(y, "repeat") == NULL)
    return weir_item_long(l, m, block, y, item);
  return weir_item_repeat(l, m, block, y, item) && add_repeat(w, y, item);
}

/* A body is one unit on one device, its node's. */
static bool check_device(weir_loader *l, const weir_item *item) {
  return item->device.size == 0 ||
         weir_report(l, WEIR_W1127, item->mark,
                     "a body runs where its scan, while or if does: `@` stands "
                     "there");
}

/* A broken item keeps its names, so that uses of them are not errors too. */
static void add_item(node_walk *w, const weir_yaml_entry *e, weir_body *body,
                     bool outermost) {
  weir_loader *l = w->loader;
  assert(body->count < body->capacity);
  weir_item *item = &body->items[body->count++];
  *item = (weir_item){.kind = WEIR_ITEM_CALL, .mark = &e->key_mark};
  bool named = weir_item_names(l, w->module, w->block, e, item);
  if (!parse_item(w, e, body, item) || !named ||
      (body->ports != NULL && !check_device(l, item)))
    item->kind = WEIR_ITEM_BROKEN;
  body->has_repeat = body->has_repeat || item->kind == WEIR_ITEM_REPEAT;
  if (outermost && !weir_body_declare(l, w->module, w->block, body))
    item->kind = WEIR_ITEM_BROKEN;
}

static void add_nodes(node_walk *w, const weir_yaml *nodes, weir_body *body,
                      bool outermost) {
  for (uint32_t i = 0; i < nodes->count && weir_loader_going(w->loader); i++)
    add_item(w, &nodes->entries[i], body, outermost);
}

bool weir_body_add_nodes(weir_loader *l, weir_module *m,
                         const weir_block *block, const weir_yaml *nodes,
                         weir_body *body) {
  node_walk w = {.loader = l, .module = m, .block = block};
  add_nodes(&w, nodes, body, true);
  while (w.jobs.count > 0 && weir_loader_going(l)) {
    body_job job = w.jobs.items[--w.jobs.count];
    if (job.form == NULL) {
      if (weir_body_begin(l, job.body, job.nodes->count))
        add_nodes(&w, job.nodes, job.body, false);
    } else {
      bool ok = weir_form_body_begin(l, m, block, job.form, job.part);
      if (ok && job.nodes != NULL) add_nodes(&w, job.nodes, job.body, true);
      if (!ok || !weir_form_body_end(l, m, block, job.form, job.part))
        job.form->broken = true;
    }
  }
  weir_vec_free(l->alloc, &w.jobs);
  return weir_loader_going(l);
}
