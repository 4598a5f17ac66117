/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that tasks ask for by their names. A blob that is being sent counts its
 * sends; their owner waits for them. A task that has asked takes them, or is
 * lost, or the session ends: so the wait ends. */
#include "runtime/dist/cluster/blobs.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/dist/bundle/bundle.h"
#include "runtime/dist/channel/exchange.h"

struct weir_dist_blob {
  weir_dist_blob *next;
  uint8_t name[WEIR_BLOB_NAME_BYTES];
  weir_bytes bytes;
  uint32_t sends;
};

typedef struct blob_send {
  weir_channel_done done;
  weir_dist_blobs *blobs;
  weir_dist_blob *blob;
} blob_send;

void weir_dist_blobs_init(weir_dist_blobs *b, const weir_env *env) {
  b->env = env;
  b->first = NULL;
  pthread_mutex_init(&b->lock, NULL);
  pthread_cond_init(&b->sent, NULL);
}

void weir_dist_blobs_release(weir_dist_blobs *b) {
  pthread_cond_destroy(&b->sent);
  pthread_mutex_destroy(&b->lock);
}

weir_status weir_dist_blobs_add(weir_dist_blobs *b, const uint8_t *name,
                                weir_bytes bytes, weir_dist_blob **out,
                                weir_error *err) {
  weir_dist_blob *blob = weir_alloc_array(b->env->alloc, 1, sizeof *blob);
  *out = blob;
  if (blob == NULL) return weir_fail_memory(err, sizeof *blob);
  memcpy(blob->name, name, sizeof blob->name);
  blob->bytes = bytes;
  pthread_mutex_lock(&b->lock);
  blob->next = b->first;
  b->first = blob;
  pthread_mutex_unlock(&b->lock);
  return WEIR_OK;
}

void weir_dist_blobs_drop(weir_dist_blobs *b, weir_dist_blob *blob) {
  if (blob == NULL) return;
  pthread_mutex_lock(&b->lock);
  weir_dist_blob **at = &b->first;
  while (*at != blob) at = &(*at)->next;
  *at = blob->next;
  while (blob->sends > 0) pthread_cond_wait(&b->sent, &b->lock);
  pthread_mutex_unlock(&b->lock);
  weir_free(b->env->alloc, blob);
}

static void sent(void *self, weir_status status, const weir_error *err) {
  (void)status, (void)err;
  blob_send *send = self;
  weir_dist_blobs *b = send->blobs;
  pthread_mutex_lock(&b->lock);
  send->blob->sends--;
  pthread_cond_broadcast(&b->sent);
  pthread_mutex_unlock(&b->lock);
  weir_free(b->env->alloc, send);
}

weir_status weir_dist_blobs_send(weir_dist_blobs *b,
                                 struct weir_exchange *values, uint32_t place,
                                 const uint8_t *name, uint32_t number,
                                 weir_error *err) {
  blob_send *send = weir_alloc_array(b->env->alloc, 1, sizeof *send);
  if (send == NULL) return weir_fail_memory(err, sizeof *send);
  pthread_mutex_lock(&b->lock);
  weir_dist_blob *blob = b->first;
  while (blob != NULL && memcmp(blob->name, name, sizeof blob->name) != 0)
    blob = blob->next;
  if (blob != NULL) blob->sends++;
  pthread_mutex_unlock(&b->lock);
  weir_slot slot = {WEIR__V1__VALUE_KIND__BLOB, number, 0};
  if (blob == NULL) {
    weir_error why = WEIR_ERROR_INIT;
    weir_fail(&why, WEIR_W7051, NULL,
              "the driver has no blob of that name, of %" PRIu64 " bytes",
              weir_blob_size(name));
    weir_exchange_send_error(values, place, &slot, &why);
    weir_free(b->env->alloc, send);
    return WEIR_OK;
  }
  *send = (blob_send){{.fn = sent, .self = send}, b, blob};
  weir_exchange_send(values, place, &slot, blob->bytes, &send->done);
  return WEIR_OK;
}
