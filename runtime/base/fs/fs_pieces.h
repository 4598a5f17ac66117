/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_FS_PIECES_H_
#define WEIR_BASE_FS_PIECES_H_

#include "runtime/base/env.h"

/* A file to be read in pieces, of a descriptor that it takes over;
 * weir_fs_pieces.close closes it. */
weir_piece_file weir_fs_piece_file(int fd, size_t bytes);

#endif
