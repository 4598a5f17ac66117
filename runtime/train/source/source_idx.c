/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/source/array.h"

static const weir_data_key kKeys[] = {
    {.name = "files"},
    {.name = NULL},
};

const weir_source_def weir_source_idx = {
    .form = {"idx", kKeys},
    .summary = "an IDX file for each column, as MNIST has them",
    .files = WEIR_FILES_BY_COLUMN,
    .open = weir_source_array_files,
};
