/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "runtime/dist/link/link_internal.h"

/* Probes: one attempt to dial a peer whose connection has ended.
 *
 * A reset alone does not say whether the process or the way to it is gone, and
 * the one who reads the error wants to know. A process that has ended leaves
 * nobody who listens, and the system says so at once; one behind a link that
 * was cut answers, or nothing comes back. The answer changes words alone: the
 * peer is lost, whatever it is (link.h says why).
 *
 * One that has closed the connection itself is probed, too: it may have done so
 * since another task was lost, and that loss should be known before this one is
 * reported.
 *
 * Invariant: a peer that is probed has no connection but its probe. */

static void end(weir_link *link, weir_peer *peer, const char *why,
                weir_sv text) {
  weir_error err = WEIR_ERROR_INIT;
  weir_fail(&err, WEIR_W7020, NULL, "%s, %s%s%.*s", peer->last.message, why,
            text.size > 0 ? ": " : "", WEIR_SV(text));
  peer->last = (weir_error)WEIR_ERROR_INIT;
  weir_link_failed(link, peer, &err, true);
}

bool weir_link_probe(weir_link *link, weir_peer *peer, const weir_error *why) {
  weir_error err = WEIR_ERROR_INIT;
  weir_transport *t = link->control;
  if (peer->state != WEIR_PEER_UP || peer->incoming || peer->parting ||
      !link->options.probes)
    return false;
  weir_link_close(link, peer);
  if (t->vt->connect(t, weir_sv_from(peer->address), &peer->probe, &err) !=
      WEIR_OK) {
    peer->probe = 0;
    return false;
  }
  peer->state = WEIR_PEER_PROBED;
  peer->next_ns = link->now_ns + link->options.heartbeat_ns;
  peer->last = (weir_error)WEIR_ERROR_INIT;
  weir_error_copy(&peer->last, why);
  return true;
}

bool weir_link_probed(weir_link *link, weir_connection c, const weir_sv *text) {
  weir_peer *peer = NULL;
  for (size_t i = 0; i < link->peers.count && peer == NULL; i++)
    if (link->peers.items[i]->probe == c) peer = link->peers.items[i];
  if (peer == NULL) return false;
  if (text == NULL && peer->orderly) {
    weir_error why = peer->last;
    weir_link_failed(link, peer, &why, true);
  } else if (text == NULL) {
    end(link, peer,
        "but somebody listens there: the link was cut, or another "
        "process has been started",
        WEIR_SV_LIT(""));
  } else {
    peer->probe = 0;
    end(link, peer, "and it is not there any more", *text);
  }
  weir_link_reap(link);
  return true;
}

void weir_link_probe_late(weir_link *link, weir_peer *peer) {
  char text[32];
  int n = snprintf(text, sizeof text, "%.1f s",
                   (double)link->options.heartbeat_ns / 1e9);
  end(link, peer, "and nothing answers there any more",
      (weir_sv){text, n > 0 ? (size_t)n : 0});
}
