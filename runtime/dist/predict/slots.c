/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/predict/slots.h"

#include <assert.h>

static weir_status make_inputs(weir_predict_slots *s, weir_predict_slot *slot,
                               weir_exec_feed *feeds, size_t *out_count,
                               weir_error *err) {
  const weir_predict_model *m = s->model;
  *out_count = 0;
  for (uint32_t i = 0; i < m->input_count; i++) {
    const weir_predict_port *port = &m->inputs[i];
    if (!port->batched) continue;
    weir_shape shape = weir_predict_shape(port, slot->rows);
    WEIR_TRY(weir_tensor_create_shaped(s->alloc, port->dtype, &shape,
                                       &slot->inputs[i], err));
    memset(slot->inputs[i]->data, 0, slot->inputs[i]->bytes);
    feeds[(*out_count)++] = (weir_exec_feed){port->value, slot->inputs[i]};
  }
  return WEIR_OK;
}

static weir_status bind(weir_exec_session *session, weir_predict_slots *s,
                        weir_predict_slot *slot, weir_exec_feed *feeds,
                        weir_exec_fetch *fetches, weir_error *err) {
  const weir_predict_model *m = s->model;
  size_t feed_count;
  WEIR_TRY(make_inputs(s, slot, feeds, &feed_count, err));
  for (uint32_t k = 0; k < m->output_count; k++)
    fetches[k] = (weir_exec_fetch){.value = m->outputs[k].value};
  const weir_exec_request request = {.feeds = feeds,
                                     .feed_count = feed_count,
                                     .fetches = fetches,
                                     .fetch_count = m->output_count};
  WEIR_TRY(weir_exec_bind(session, &request, &slot->binding, err));
  for (uint32_t k = 0; k < m->output_count; k++)
    slot->outputs[k] = fetches[k].tensor;
  return WEIR_OK;
}

static weir_status make_slot(weir_exec_session *session, weir_predict_slots *s,
                             weir_predict_slot *slot, weir_error *err) {
  const weir_predict_model *m = s->model;
  weir_exec_feed *feeds =
      weir_alloc_array(s->alloc, m->input_count, sizeof *feeds);
  weir_exec_fetch *fetches =
      weir_alloc_array(s->alloc, m->output_count, sizeof *fetches);
  slot->inputs =
      weir_alloc_array(s->alloc, m->input_count, sizeof(weir_tensor *));
  slot->outputs =
      weir_alloc_array(s->alloc, m->output_count, sizeof(weir_tensor *));
  bool room = feeds != NULL && fetches != NULL && slot->inputs != NULL &&
              slot->outputs != NULL;
  weir_status status = room ? bind(session, s, slot, feeds, fetches, err)
                            : weir_fail_memory(err, m->input_count);
  weir_free(s->alloc, feeds);
  weir_free(s->alloc, fetches);
  return status;
}

weir_status weir_predict_slots_init(const weir_allocator *alloc,
                                    weir_exec_session *session,
                                    const weir_predict_model *model,
                                    weir_predict_slots *out, weir_error *err) {
  *out = (weir_predict_slots){.alloc = alloc, .model = model};
  for (uint32_t i = 0; i < model->size_count; i++) {
    out->items[i].rows = model->sizes[i];
    out->count = i + 1;
    WEIR_TRY(make_slot(session, out, &out->items[i], err));
  }
  return WEIR_OK;
}

static void release_tensors(const weir_allocator *alloc, weir_tensor **list,
                            uint32_t count) {
  for (uint32_t i = 0; list != NULL && i < count; i++)
    weir_tensor_unref(list[i]);
  weir_free(alloc, list);
}

void weir_predict_slots_release(weir_predict_slots *s) {
  if (s == NULL) return;
  for (uint32_t i = 0; i < s->count; i++) {
    weir_binding_release(s->items[i].binding);
    release_tensors(s->alloc, s->items[i].inputs, s->model->input_count);
    release_tensors(s->alloc, s->items[i].outputs, s->model->output_count);
  }
  s->count = 0;
}

weir_predict_slot *weir_predict_slot_for(weir_predict_slots *s, int64_t rows) {
  uint32_t i = 0;
  while (s->items[i].rows < rows) i++;
  assert(i < s->count);
  return &s->items[i];
}
