/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/cluster/links.h"

/* The link of threads holds between kinds of the host. Where a cluster has no
 * other devices it is the cluster's local link too, by which collectives are
 * estimated. */

static weir_place_link link_of(const weir_cost_piece *piece) {
  return (weir_place_link){.latency_ns = piece->latency_ns,
                           .fs_per_byte = piece->fs_per_byte,
                           .exclusive = true,
                           .send_ns = piece->send_ns,
                           .send_fs_per_byte = piece->send_fs_per_byte};
}

void weir_cluster_links_use(const weir_costs *costs, bool in_process,
                            weir_cluster *cluster) {
  if (costs == NULL) return;
  bool hosts = true;
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
    hosts &= cluster->kind_count[k] == 0 || weir_device_kinds[k]->host;
  weir_place_link link = link_of(&costs->pieces[0]);
  if (costs->piece_count > 0 && hosts) {
    for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
      if (weir_device_kinds[k]->host) cluster->local[k] = link;
    if (in_process) cluster->network = link;
  }
  cluster->one_process = in_process;
  for (int i = 0; i < WEIR_DEVICE_KINDS; i++)
    for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
      bool both = weir_device_kinds[i]->host && weir_device_kinds[k]->host;
      bool pair = costs->ways[i][k].count > 0;
      cluster->known[i][k] = pair || (both && costs->piece_count > 0);
      cluster->way[i][k] = pair ? link_of(&costs->ways[i][k]) : link;
    }
}
