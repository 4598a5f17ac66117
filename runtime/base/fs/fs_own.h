/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_FS_OWN_H_
#define WEIR_BASE_FS_OWN_H_

#include "runtime/base/status.h"

/* The folder in which processes of one user find each other on a machine. */

enum { WEIR_OWN_FOLDER_BYTES = 64 };

/* Gives /tmp/weir-UID, which is made if need be. It is this user's, no other
 * may write into it, and it is no link: so nobody else has put into it what is
 * there. It is the same for a login, a service and a job of the user; what the
 * environment says of folders is not. Errors: W4002, W6005. */
weir_status weir_own_folder(char out_path[WEIR_OWN_FOLDER_BYTES],
                            weir_error *err);

/* The same for the folder |path|. */
weir_status weir_own_folder_at(const char *path, weir_error *err);

#endif
