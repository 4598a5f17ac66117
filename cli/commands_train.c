/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "cli/table.h"
#include "cli/train.h"

#define TRAIN_COMMON                                                      \
  TEXT("threads", 't', "N", threads, "WEIR_THREADS",                      \
       "threads running at once (one per core)"),                         \
      GRAPH_OPTIONS,                                                      \
      TEXT("data-root", 0, "DIR", data_root, "WEIR_DATA_ROOT",            \
           "open data files beneath DIR only"),                           \
      TEXT("checkpoint", 0, "DIR", checkpoint, NULL,                      \
           "folder of checkpoints, instead of train: checkpoint: dir:"),  \
      LIST("map", 0, "OLD=NEW", maps,                                     \
           "variable NEW gets tensor OLD of the file of weights"),        \
      FLAG("ref-kernels", 0, ref_kernels, "use reference kernels only"),  \
      IN_PROCESS, FLAG("json", 0, json, "print JSON, one object a line"), \
      FLAG("quiet", 'q', quiet, "no progress"), PRINT_CONFIG, COLOR, HELP

const cli_option cli_train_options[] = {
    INT("steps", "N", steps, NULL, 1, INT64_MAX,
        "end after N updates in all, instead of what train: says"),
    INT("epochs", "N", epochs, NULL, 1, INT64_MAX,
        "end after N epochs in all, likewise"),
    CHOICE("resume", 0, "auto|none", resume, NULL,
           "auto: go on from the newest checkpoint; none: start anew, and "
           "refuse a folder that has some"),
    TEXT("init", 0, "FILE", init, NULL,
         "first values of variables, by name, from a safetensors file"),
    TEXT("events", 0, "DIR", events, NULL,
         "folder of summaries, instead of train: summary: dir:"),
    TRAIN_COMMON,
    END};

const cli_option cli_eval_options[] = {
    TEXT("weights", 0, "FILE", weights, NULL,
         "variables from a safetensors file instead of a checkpoint"),
    TEXT("data", 0, "NAME", data, NULL,
         "the data set, instead of that of train: eval:"),
    TRAIN_COMMON, END};

#define TRAINED                                          \
  TEXT("checkpoint", 0, "DIR", checkpoint, NULL,         \
       "variables of the newest checkpoint in DIR"),     \
      TEXT("weights", 0, "FILE", weights, NULL,          \
           "variables from a safetensors file instead"), \
      LIST("map", 0, "OLD=NEW", maps,                    \
           "variable NEW gets tensor OLD of the file of weights")

const cli_option cli_predict_options[] = {
    TRAINED,
    TEXT("data", 0, "NAME", data, NULL, "look at this data set of the graph"),
    INT("take", "N", take, NULL, 1, INT64_MAX, "of its first N examples only"),
    INT("sample", "N", sample, NULL, 1, 1000000,
        "draw N tokens of text from a language model"),
    TEXT("prompt", 0, "TEXT", prompt, NULL, "what the text begins with"),
    NUMBER("temperature", "T", temperature,
           "0: always the best token; more: more variety (1)"),
    RUN_OPTIONS,
    LIST("output", 'o', "NAME=@FILE", outputs,
         "write an output, all rows, to a .npy or safetensors file"),
    GRAPH_OPTIONS,
    FLAG("full", 0, full, "print every element of large tensors"),
    FLAG("json", 0, json, "print JSON, one object a line"),
    FLAG("quiet", 'q', quiet, "no summary line"),
    PRINT_CONFIG,
    COLOR,
    HELP,
    END};

const cli_option cli_export_options[] = {
    TRAINED,
    LIST("output", 'o', "FILE", outputs,
         "NAME.weir.yaml; NAME.safetensors is written beside it"),
    TEXT("threads", 't', "N", threads, "WEIR_THREADS",
         "threads running at once (one per core)"),
    GRAPH_OPTIONS,
    FLAG("quiet", 'q', quiet, "no summary line"),
    PRINT_CONFIG,
    COLOR,
    HELP,
    END};
