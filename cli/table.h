/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TABLE_H_
#define CLI_TABLE_H_

#include "cli/cli.h"

/* How a command's file writes its options. A row that several commands share is
 * written here, once. */

#define AT(field) offsetof(cli_args, field)
#define END \
  { NULL, 0, CLI_FLAG, NULL, NULL, 0, NULL, 0, 0 }
#define FLAG(name, letter, field, doc) \
  { name, letter, CLI_FLAG, NULL, doc, AT(field), NULL, 0, 0 }
#define LIST(name, letter, arg, field, doc) \
  { name, letter, CLI_LIST, arg, doc, AT(field), NULL, 0, 0 }
#define TEXT(name, letter, arg, field, env, doc) \
  { name, letter, CLI_TEXT, arg, doc, AT(field), env, 0, 0 }
#define CHOICE(name, letter, arg, field, env, doc) \
  { name, letter, CLI_CHOICE, arg, doc, AT(field), env, 0, 0 }
/* One of the names of a list of the library. */
#define NAMED(name, arg, field, row, doc) \
  { name, 0, CLI_CHOICE, arg, doc, AT(field), NULL, 0, 0, row }
#define INT(name, arg, field, env, min, max, doc) \
  { name, 0, CLI_INT, arg, doc, AT(field), env, min, max }
#define NUMBER(name, arg, field, doc) \
  { name, 0, CLI_FLOAT, arg, doc, AT(field), NULL, 0, 0 }
#define TIME(name, arg, field, env, doc) \
  { name, 0, CLI_TIME, arg, doc, AT(field), env, 0, 0 }

#define HELP FLAG("help", 'h', help, "show this text (-h: in short)")
#define COLOR                                                  \
  CHOICE("color", 0, "auto|always|never", color, "WEIR_COLOR", \
         "colours in messages (auto: on a terminal, unless NO_COLOR)")
#define PRINT_CONFIG                    \
  FLAG("print-config", 0, print_config, \
       "print the options' values and where each came from, and stop")
/* The last rows of a command that has a configuration. */
#define COMMON PRINT_CONFIG, COLOR, HELP

#define QUIET FLAG("quiet", 'q', quiet, "no summary line")
#define FULL FLAG("full", 0, full, "print every element of large tensors")
/* --format and --json, which is short for --format json. */
#define JSON                                              \
  CHOICE("format", 0, "text|json", format, "WEIR_FORMAT", \
         "the form of the output"),                       \
      JSON_FORMAT
#define JSON_FORMAT FLAG("json", 0, json, "the same as --format json")
#define JSON_LINES                                          \
  CHOICE("format", 0, "text|json", format, "WEIR_FORMAT",   \
         "the form of the output; json: an object a line"), \
      JSON_FORMAT

#define GRAPH_OPTIONS                                                      \
  LIST("param", 'p', "NAME=VALUE", params, "set a param of the graph"),    \
      LIST("set", 0, "PATH=VALUE", overrides,                              \
           "put VALUE (as in YAML) at PATH of the file: train.steps=100"), \
      LIST("limit", 0, "NAME=VALUE", limits,                               \
           "memory=1GiB, bytes=, nodes=, depth=: raise or set a limit"),   \
      INT("seed", "N", seed, "WEIR_SEED", 0, INT64_MAX,                    \
          "seed of random ops (0)")
#define TIMEOUT                                       \
  TIME("timeout", "TIME", timeout_ns, "WEIR_TIMEOUT", \
       "end the command after TIME (30s, 200ms) with exit code 138")
#define TIMED_GRAPH_OPTIONS GRAPH_OPTIONS, TIMEOUT
#define ISA                                                     \
  CHOICE("isa", 0, "generic|avx2|avx512|neon", isa, "WEIR_ISA", \
         "the best instruction set of kernels (the machine's)")
#define THREADS                                      \
  TEXT("threads", 't', "N", threads, "WEIR_THREADS", \
       "threads running at once (one per core)"),    \
      ISA
/* Of commands that compute, each in its own process and in tasks of --local. */
#define DEVICE_WAIT                                                           \
  TIME("device-wait", "TIME", device_wait_ns, NULL,                           \
       "wait so long for memory of a GPU that other processes hold (0s); no " \
       "effect without GPUs"),                                                \
      TEXT("device-locks", 0, "DIR", device_locks, NULL,                      \
           "the folder of lock files of GPUs with `share: queue`, which "     \
           "processes use in turns (/tmp/weir-UID)")
#define TUNE                                                              \
  TEXT("tune", 0, "FILE", tune, NULL,                                     \
       "take kernels that weir tune has timed from FILE, and algorithms " \
       "of matrix products on GPUs; for those that it lacks time up to "  \
       "eight and add the quickest")
#define TF32                                                             \
  FLAG("tf32", 0, tf32,                                                  \
       "products of f32 on GPUs may round their factors to TF32, which " \
       "is quicker and gives other bits; no effect on CPUs")
#define DATA_ROOT                                          \
  TEXT("data-root", 0, "DIR", data_root, "WEIR_DATA_ROOT", \
       "open data files beneath DIR only")
#define REF_KERNELS \
  FLAG("ref-kernels", 0, ref_kernels, "use reference kernels only")
/* Commands that run steps; effects: PROFILE_EFFECTS. */
#define PROFILE                                                               \
  FLAG("profile", 0, profile,                                                 \
       "print where steps go, by node: time, share, GFLOP/s, GB/s, share of " \
       "the machine's peak, kernel and reason"),                              \
      TEXT("profile-html", 0, "FILE", profile_html, NULL,                     \
           "write the same as a page with a flame graph")
#define ONE_PROCESS(name, other)                          \
  {                                                       \
    .option = name, .without = other,                     \
    .why =                                                \
        "a profile is of one process, which runs all of " \
        "the graph"                                       \
  }
#define PROFILE_EFFECTS                                               \
  ONE_PROCESS("profile", "cluster"), ONE_PROCESS("profile", "local"), \
      ONE_PROCESS("profile-html", "cluster"),                         \
      ONE_PROCESS("profile-html", "local")
#define MAP                       \
  LIST("map", 0, "OLD=NEW", maps, \
       "variable NEW gets tensor OLD of the file of weights")
#define RUN_OPTIONS                                              \
  THREADS, DEVICE_WAIT, TF32, TUNE,                              \
      LIST("input", 'i', "NAME=VALUE", inputs,                   \
           "feed an input: @FILE, @FILE#MEMBER, @FILE[0:8], -, " \
           "f32:2x2=1,2,3,4, [[1, 2]], random, random:seed=1"),  \
      DATA_ROOT,                                                 \
      FLAG("no-fusion", 0, no_fusion,                            \
           "run every node by a kernel of its own"),             \
      REF_KERNELS, IN_PROCESS
/* The forms of a cluster's text. */
#define CLUSTERS                                                               \
  "ps=1,worker=2,gpu=1,gpu_memory=8GiB, FILE.yaml, graph (its `cluster:`) or " \
  "auto (one "                                                                 \
  "worker with this machine's devices)"
#define CLUSTER                                       \
  TEXT("cluster", 0, "SPEC", cluster, "WEIR_CLUSTER", \
       "the devices: " CLUSTERS "; by default graph, else auto")
#define HEARTBEAT                                                             \
  TIME("heartbeat", "TIME", heartbeat_ns, NULL,                               \
       "time between signs of life; five without one: the process counts as " \
       "lost (1s)")
#define INSECURE                \
  FLAG("insecure", 0, insecure, \
       "let frames, which are not encrypted, leave this machine")
/* Tasks of commands that run a graph; effects: TASKS_EFFECTS. */
#define TASKS                                                                  \
  TEXT("cluster", 0, "SPEC", tasks, NULL,                                      \
       "run on tasks (weir task) at their addresses: FILE.yaml, graph (its "   \
       "`cluster:`), tf-config (TF_CONFIG of the environment), dmlc (train "   \
       "alone: DMLC_* of ps-lite) or auto (which of the two is there, "        \
       "else this machine)"),                                                  \
      TEXT("local", 0, "SPEC", local, NULL,                                    \
           "start a process for each task, ps=1,worker=2, and run on them"),   \
      TEXT("job", 0, "NAME", job, NULL,                                        \
           "with --cluster: this process is a task of job NAME too, at its "   \
           "address"),                                                         \
      INT("index", "N", index, NULL, 0, 511,                                   \
          "with --job: the number of that task (0)"),                          \
      TEXT("share", 0, "NAME", share, NULL,                                    \
           "with --cluster: use the variables together with other drivers of " \
           "that NAME, step by step"),                                         \
      TEXT("task-threads", 0, "N", task_threads, NULL,                         \
           "with --local: threads of each task (one per core)"),               \
      TIME("start-timeout", "TIME", start_ns, NULL,                            \
           "with tasks: until all of them serve (30s); between graphs: while " \
           "one is "                                                           \
           "away (10m)"),                                                      \
      TIME("step-timeout", "TIME", step_ns, NULL,                              \
           "with tasks: for a step (30s, or 20 times the mean)"),              \
      HEARTBEAT, INSECURE
#define NOT_BOTH(a, b)                                            \
  {                                                               \
    .option = a, .without = b,                                    \
    .why =                                                        \
        "one graph runs on one cluster: in this process, on its " \
        "own tasks, or on those at addresses"                     \
  }
#define NEEDS(name, others) \
  { .option = name, .with = others }
#define TASKS_EFFECTS TASKS_EFFECTS_WITH("cluster")
/* |insecure|: the options that --insecure is for. */
#define TASKS_EFFECTS_WITH(insecure)                                   \
  NOT_BOTH("cluster", "in-process"), NOT_BOTH("local", "in-process"),  \
      NOT_BOTH("local", "cluster"), NEEDS("task-threads", "local"),    \
      NEEDS("start-timeout", "cluster|local"),                         \
      NEEDS("step-timeout", "cluster|local"), NEEDS("job", "cluster"), \
      NEEDS("index", "job"), NEEDS("heartbeat", "cluster|local"),      \
      NEEDS("share", "cluster"), NEEDS("insecure", insecure)
#define IN_PROCESS                                                             \
  TASKS,                                                                       \
      TEXT("in-process", 0, "SPEC", in_process, NULL,                          \
           "run in this process, on the devices of " CLUSTERS),                \
      PLACER_WHEN(WITH_IN_PROCESS), OBJECTIVE_WHEN(WITH_IN_PROCESS),           \
      BUDGET_WHEN(WITH_IN_PROCESS),                                            \
      TEXT("costs", 0, "FILE", costs, NULL, WITH_IN_PROCESS "measured costs"), \
      TEXT("plan", 0, "FILE", plan, NULL,                                      \
           WITH_IN_PROCESS "a plan from weir place --json"),                   \
      TEXT("save-plan", 0, "FILE", save_plan, NULL,                            \
           WITH_IN_PROCESS "write the plan that was used as JSON"),            \
      STRICT_WHEN(WITH_IN_PROCESS)
/* Rows of place and trace, and of the commands that run a graph, where they
 * need --in-process: |when| says so. */
#define WITH_IN_PROCESS "with --in-process or tasks: "
#define BUDGET_WHEN(when)                   \
  TEXT("budget", 0, "N|TIME", budget, NULL, \
       when "moves of local search, or a time; 0: none (by the graph's size)")
#define PLACER_WHEN(when)                                                      \
  {                                                                            \
    "placer", 0, CLI_TEXT, "NAME", when "the way to a plan", AT(placer), NULL, \
        0, 0, weir_tools_placer                                                \
  }
#define OBJECTIVE_WHEN(when)                                  \
  NAMED("objective", "NAME", objective, weir_tools_objective, \
        when "the figure of the plan to make small")
#define STRICT_WHEN(when)                                                    \
  FLAG("strict-placement", 0, strict_placement,                              \
       when                                                                  \
       "no request is dropped, whatever a rule says, and a GPU that is not " \
       "there is an error")
#define BUDGET BUDGET_WHEN("")
#define BUDGET_AND_VERBOSE              \
  BUDGET, FLAG("verbose", 'v', verbose, \
               "with --budget: a line a second while it searches")
#define PLACER PLACER_WHEN("")
#define OBJECTIVE OBJECTIVE_WHEN("")
/* Of graphs whose sizes come with their inputs. */
#define SHAPES                                        \
  LIST("input", 'i', "NAME=VALUE", inputs,            \
       "an input as run takes it: its shape counts"), \
      ISA
/* Plans that place and trace start from. */
#define PLANS                                                          \
  TEXT("given", 0, "PLAN", given, NULL,                                \
       "a plan that joins the candidates: the answer is never worse"), \
      TEXT("plan", 0, "PLAN", plan, NULL, "take this plan as it is")

/* Effects: a plan says what is placed, and that is the fused graph. */
#define NO_FUSION_WITHOUT_PLAN                \
  {                                           \
    .option = "no-fusion", .without = "plan", \
    .why = "a plan is of the fused graph"     \
  }

/* train and eval. */
#define TRAIN_COMMON TRAIN_COMMON_WITH(JSON_LINES)
/* With the command's own --format. */
#define TRAIN_COMMON_WITH(...)                                           \
  THREADS, DEVICE_WAIT, TF32, TUNE, GRAPH_OPTIONS, DATA_ROOT,            \
      TEXT("checkpoint", 0, "DIR", checkpoint, NULL,                     \
           "folder of checkpoints, instead of train: checkpoint: dir:"), \
      MAP, REF_KERNELS, IN_PROCESS, __VA_ARGS__,                         \
      FLAG("quiet", 'q', quiet, "no progress"), COMMON
/* predict and eval. */
#define LABELS                            \
  TEXT("labels", 0, "FILE", labels, NULL, \
       "names of the classes, one a line, instead of the graph's")
/* predict and export. */
#define TRAINED                                          \
  TEXT("checkpoint", 0, "DIR", checkpoint, NULL,         \
       "variables of the newest checkpoint in DIR"),     \
      TEXT("weights", 0, "FILE", weights, NULL,          \
           "variables from a safetensors file instead"), \
      MAP

#endif
