/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_CERTS_H_
#define CLI_CLUSTER_CERTS_H_

#include "cli/cli.h"

/* Certificates for the tasks of a cluster, made by the command openssl. */

typedef struct cli_certs_opts {
  const char *folder;  /* made if it is not there */
  const char *cluster; /* a file, or ps=1,worker=2 */
  int64_t days;        /* that they are valid; 0: 365 */
  bool quiet;          /* no line for each file */
} cli_certs_opts;

/* Makes ca.pem and ca.key, and for each task and for the driver
 * JOB-INDEX.pem and JOB-INDEX.key, driver.pem and driver.key; keys can be read
 * by this user alone. A pair of files that is there is kept. Errors: W0005
 * (openssl is not there), W0002 (one file of a pair is there), W5009, W6003,
 * those of reading the cluster. */
weir_status cli_certs_make(weir_runtime *runtime, const cli_certs_opts *opts,
                           weir_error *err);

#endif
