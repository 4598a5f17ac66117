/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/table.h"
#include "cli/train.h"

/* The one table: help, the manual page, suggestions and the environment follow
 * from it. */

static const cli_option run_options[] = {
    RUN_OPTIONS,
    LIST("output", 'o', "NAME=@FILE", outputs,
         "write an output to a .npy, .npz or safetensors file, or to - (.npy)"),
    LIST("target", 0, "NODE", targets, "run only what NODE needs, and show it"),
    LIST("expect", 0, "NAME=@FILE", expects,
         "compare an output; exit 1 and show the first difference"),
    NUMBER("rtol", "X", rtol, "relative tolerance of --expect (1e-5)"),
    NUMBER("atol", "X", atol, "absolute tolerance of --expect (1e-8)"),
    GRAPH_OPTIONS,
    CHOICE("format", 0, "text|json", format, "WEIR_FORMAT",
           "how outputs are printed"),
    FLAG("json", 0, json, "the same as --format json"),
    FLAG("full", 0, full, "print every element of large tensors"),
    LIST("dump", 0, "NODE", dumps, "print the results of NODE as well"),
    FLAG("trap-nan", 0, trap_nan, "fail at the first NaN or infinity"),
    TEXT("trace", 0, "FILE", trace, NULL,
         "write what ran when, as Chrome JSON"),
    TIME("timeout", "TIME", timeout_ns, "WEIR_TIMEOUT",
         "end the run after TIME (30s, 200ms) with exit code 138"),
    FLAG("verbose", 'v', verbose,
         "with --in-process: where nodes went, on standard error"),
    FLAG("quiet", 'q', quiet, "no summary line"),
    PRINT_CONFIG,
    COLOR,
    HELP,
    END};

static const cli_option check_options[] = {
    GRAPH_OPTIONS,
    CHOICE("format", 0, "human|gcc|json", format, NULL,
           "how findings are printed"),
    FLAG("json", 0, json, "the same as --format json"),
    FLAG("quiet", 'q', quiet, "no summary line"),
    PRINT_CONFIG,
    COLOR,
    HELP,
    END};

static const cli_option show_options[] = {
    GRAPH_OPTIONS,
    CHOICE("after", 0, "load|gradients|train|mesh|simplify|fuse", after, NULL,
           "show the graph after this pass"),
    TEXT("data-root", 0, "DIR", data_root, "WEIR_DATA_ROOT",
         "open data files beneath DIR only"),
    FLAG("json", 0, json, "as JSON"),
    FLAG("full", 0, full, "print every element of large tensors"),
    COLOR,
    HELP,
    END};

static const cli_option bench_options[] = {
    RUN_OPTIONS,
    GRAPH_OPTIONS,
    INT("warmup", "N", warmup, NULL, 0, 1000000, "runs before measuring (10)"),
    TIME("time", "TIME", time_ns, NULL, "how long to measure (1s)"),
    INT("runs", "N", runs, NULL, 1, 100000000,
        "how many runs to measure, instead of --time"),
    INT("inflight", "N", inflight, NULL, 1, 16, "runs under way at once (1)"),
    CHOICE("format", 0, "table|csv|json", format, NULL,
           "json: one object a line"),
    FLAG("json", 0, json, "the same as --format json"),
    FLAG("explain", 0, explain, "print what was chosen for each instruction"),
    PRINT_CONFIG,
    COLOR,
    HELP,
    END};

static const cli_option place_options[] = {
    TEXT("cluster", 0, "SPEC", cluster, "WEIR_CLUSTER",
         "ps=1,worker=2,gpu=1 or auto (the graph's `cluster:`)"),
    INT("processors", "N", processors, NULL, 1, 1024,
        "equal devices for an instance file (4)"),
    OBJECTIVE,
    INT("microbatches", "M", microbatches, NULL, 1, 1000000,
        "batches in flight in a pipeline (8)"),
    TEXT("budget", 0, "N|TIME", budget, NULL,
         "moves of local search, or a time; 0: none (by the graph's size)"),
    FLAG("calibrate", 0, calibrate,
         "run the graph and measure what its nodes take"),
    TEXT("costs", 0, "FILE", costs, NULL,
         "measured costs: used, and with --calibrate written"),
    PLACER,
    FLAG("strict-placement", 0, strict_placement,
         "no request is dropped, whatever a rule says"),
    TEXT("explain", 0, "NODE", explain_node, NULL,
         "why NODE is where it is, and what moving it would cost"),
    FLAG("inference", 0, inference,
         "place what the outputs need, though the graph has `train`"),
    FLAG("all", 0, all, "a line per node"),
    FLAG("critical", 0, critical,
         "the chain of nodes, copies and waits that makes the step"),
    TEXT("memory", 0, "DEVICE", memory, NULL,
         "the moment of DEVICE's peak and what holds memory then"),
    TEXT("given", 0, "PLAN", given, NULL,
         "a plan that joins the candidates: the answer is never worse"),
    TEXT("replay", 0, "PLAN", replay, NULL, "take this plan as it is"),
    TEXT("verify", 0, "PLAN", verify, NULL,
         "check PLAN against the model; exit 4 when it breaks a rule"),
    TEXT("diff", 0, "PLAN", diff, NULL,
         "what differs from PLAN; exit 1 when something does"),
    TEXT("nodes", 0, "PATTERN", node_pattern, NULL,
         "rows of a table or JSON: c1/*, op:matmul, kind:var"),
    LIST("what-if", 0, "CHANGE", what_if,
         "what a change would give: pin N=DEVICE, add JOB, add gpu:JOB, remove "
         "DEVICE, memory DEVICE=BYTES, link network=LATENCY,BANDWIDTH"),
    GRAPH_OPTIONS,
    CHOICE("format", 0, "summary|table|json|dot|trace|html", format, NULL,
           "how the plan is printed"),
    FLAG("json", 0, json, "the same as --format json"),
    FLAG("quiet", 'q', quiet, "no summary line"),
    PRINT_CONFIG,
    COLOR,
    HELP,
    END};

static const cli_option trace_options[] = {
    TEXT("cluster", 0, "SPEC", cluster, "WEIR_CLUSTER",
         "ps=1,worker=2 or auto (the graph's `cluster:`)"),
    TEXT("budget", 0, "N|TIME", budget, NULL,
         "moves of local search, or a time; 0: none (by the graph's size)"),
    PLACER,
    FLAG("calibrate", 0, calibrate, "measure into the file of --costs first"),
    TEXT("costs", 0, "FILE", costs, NULL,
         "measured costs (without it the graph is measured first)"),
    FLAG("inference", 0, inference,
         "what the outputs need, though the graph has `train`"),
    TEXT("given", 0, "PLAN", given, NULL,
         "a plan that joins the candidates: the answer is never worse"),
    TEXT("replay", 0, "PLAN", replay, NULL, "take this plan as it is"),
    TEXT("output", 'o', "FILE", trace, NULL,
         "write both timelines for Perfetto"),
    FLAG("all", 0, all, "every node and copy, not only the worst"),
    GRAPH_OPTIONS,
    CHOICE("format", 0, "table|json", format, NULL, "how it is printed"),
    FLAG("json", 0, json, "the same as --format json"),
    PRINT_CONFIG,
    COLOR,
    HELP,
    END};

static const cli_option generate_options[] = {
    INT("nodes", "N", nodes, NULL, 1, 4000000, "about so many tasks (1000)"),
    INT("processors", "N", processors, NULL, 1, 1024,
        "planted: processors of the hidden plan (4)"),
    INT("seed", "N", seed, "WEIR_SEED", 0, INT64_MAX, "of random sizes (0)"),
    LIST("limit", 0, "NAME=VALUE", limits, "memory=1GiB"),
    PRINT_CONFIG,
    COLOR,
    HELP,
    END};

static const cli_option plain_options[] = {FLAG("json", 0, json, "as JSON"),
                                           COLOR, HELP, END};

static const cli_option checkpoint_options[] = {
    INT("step", "N", at_step, NULL, 0, INT64_MAX,
        "show the checkpoint of step N, not the newest"),
    NUMBER("rtol", "X", diff_rtol, "diff: relative tolerance (0)"),
    NUMBER("atol", "X", diff_atol, "diff: absolute tolerance (0)"),
    LIST("map", 0, "OLD=NEW", maps, "convert: rename a tensor"),
    CHOICE("role", 0, "variable|slot|state|all", role, NULL,
           "convert: tensors of this role only (all)"),
    FLAG("json", 0, json, "as JSON"),
    COLOR,
    HELP,
    END};

static const cli_option help_options[] = {
    FLAG("man", 0, man, "print the manual page weir(1) as roff"), HELP, END};

const cli_command cli_commands[] = {
    {"run", "GRAPH.weir.yaml [options]", "run a graph once",
     "Feeds the inputs, runs what the outputs need, and prints them. With -o, "
     "outputs go to\nfiles instead. GRAPH may be - for standard input.",
     "  weir run graphs/tiny_matmul.weir.yaml -i b=f32:2x2=0,1,1,0\n"
     "  weir run mlp.weir.yaml -p batch=8 -i x=@x.npy -o y=@y.npy\n"
     "  weir run mlp.weir.yaml -i x=random:seed=1 --expect y=@ref.npy --rtol "
     "1e-4\n",
     run_options, 1, 1, cli_run},
    {"train", "GRAPH.weir.yaml [options]", "train as the graph's train: says",
     "Makes gradients and updates from the graph's `train:` section and runs "
     "them over its\n`data:`. Goes on from the newest checkpoint, if there is "
     "one. SIGINT: the step is\nfinished, a checkpoint written, exit code 130; "
     "a second one ends at once.",
     "  weir train graphs/mlp_train.weir.yaml --steps 1000\n"
     "  weir train lenet.weir.yaml --checkpoint run1 --json > run1.jsonl\n",
     cli_train_options, 1, 1, cli_train},
    {"eval", "GRAPH.weir.yaml [options]", "measure what was trained",
     "Computes the metrics of `train: {eval: ...}` over a data set, with the "
     "variables of a\ncheckpoint or of a safetensors file.",
     "  weir eval lenet.weir.yaml --checkpoint run1\n"
     "  weir eval lenet.weir.yaml --weights lenet.safetensors --data train\n",
     cli_eval_options, 1, 1, cli_eval},
    {"predict", "GRAPH.weir.yaml [options]", "what a trained graph says",
     "Runs the outputs with trained variables, on examples of a data set or on "
     "inputs that\nare given. Scores of classes are printed as the best class "
     "and its probability. --sample draws text from a language model.",
     "  weir predict lenet.weir.yaml --checkpoint run1 --data test --take 10\n"
     "  weir predict lenet.weir.yaml --checkpoint run1 -i image=@x.npy\n"
     "  weir predict rnn.weir.yaml --checkpoint rnn --sample 200 --prompt 'The "
     "'\n",
     cli_predict_options, 1, 1, cli_predict},
    {"export", "GRAPH.weir.yaml [options]", "write a trained graph to be run",
     "Writes the graph without its sections for training, and its variables "
     "as safetensors\nbeside it; `weir run` of that gives the same bits.",
     "  weir export lenet.weir.yaml --checkpoint run1 -o out/lenet.weir.yaml\n"
     "  weir run out/lenet.weir.yaml -i image=@x.npy\n",
     cli_export_options, 1, 1, cli_export},
    {"check", "GRAPH.weir.yaml... [options]", "find mistakes without running",
     "Reads each graph, expands it, and works out all types and shapes. Exit "
     "code 3 when a\nmistake was found.",
     "  weir check graphs/lenet.weir.yaml\n"
     "  weir check mlp.weir.yaml --format gcc\n",
     check_options, 1, 1024, cli_check},
    {"checkpoint", "show DIR | verify DIR | diff A B | convert SRC DST",
     "look at, check, compare and convert checkpoints",
     "show prints what the newest sound checkpoint of a folder (or one "
     "manifest) holds, verify\nreads all of them (exit code 5: damaged), diff "
     "compares tensors by name (exit code 1: they\ndiffer), convert writes a "
     ".safetensors or .npz file from a checkpoint, or the reverse.",
     "  weir checkpoint show runs/a\n"
     "  weir checkpoint verify runs/a\n"
     "  weir checkpoint diff runs/a runs/b --rtol 1e-5\n"
     "  weir checkpoint convert runs/a weights.safetensors --role variable\n"
     "  weir checkpoint convert old.npz runs/new --map w=dense/w\n",
     checkpoint_options, 2, 3, cli_checkpoint},
    {"show",
     "ops | op NAME | graph GRAPH | data GRAPH [SET] | tensor FILE | devices | "
     "errors",
     "show ops, graphs, data sets, tensor files, devices, errors",
     "ops lists the operations, op NAME prints one's manual; graph prints the "
     "nodes with\ntheir types, as they are after a pass; data reads the data "
     "sets and prints\ncolumns, examples, batches and first rows; tensor "
     "prints a tensor file.",
     "  weir show op conv2d\n"
     "  weir show graph graphs/lenet.weir.yaml --after fuse\n"
     "  weir show data graphs/lenet.weir.yaml train\n"
     "  weir show tensor x.npy\n",
     show_options, 1, 3, cli_show},
    {"place", "GRAPH.weir.yaml|FILE.stg|FILE.json [options]",
     "decide which node runs where",
     "Places the graph on a cluster, which need not exist, and tells what the "
     "step takes by\nthe model, how far that is from a lower bound, and why "
     "each node is where it is.",
     "  weir place graphs/lenet.weir.yaml --cluster ps=1,worker=2\n"
     "  weir place graphs/lenet.weir.yaml --explain c1/conv2d\n"
     "  weir place graphs/lenet.weir.yaml --format html > plan.html\n"
     "  weir place graphs/lenet.weir.yaml --what-if \"add gpu:worker\"\n"
     "  weir place graphs/lenet.weir.yaml --calibrate --costs lenet.costs\n"
     "  weir place rand0000.stg --processors 4 --json\n",
     place_options, 1, 1, cli_place},
    {"trace", "GRAPH.weir.yaml [options]",
     "carry a plan out and compare it with its prediction",
     "Places the graph, runs it on the devices of this process with random "
     "inputs, and tells for\nthe step, each node and each copy what was "
     "predicted and what was measured.",
     "  weir trace graphs/lenet.weir.yaml --inference --cluster auto\n"
     "  weir trace graphs/mlp.weir.yaml --costs here.costs -o mlp.json\n",
     trace_options, 1, 1, cli_trace},
    {"generate", "KIND [options]", "write a task graph for experiments",
     "KIND is cholesky, lu, fft, stencil, layered, transformer or planted. The "
     "graph goes to\nstandard output, as a graph file of task nodes. planted "
     "hides a plan without idle time:\nits step is the best possible.",
     "  weir generate cholesky --nodes 10000 > cholesky.weir.yaml\n"
     "  weir generate planted --nodes 500 --processors 8 > p.weir.yaml\n",
     generate_options, 1, 1, cli_generate},
    {"bench", "GRAPH.weir.yaml [options]", "measure latency and throughput",
     "Inputs that are not given are random. Inputs with defaults are computed "
     "in every run,\nand all outputs are made. A list of values for --threads "
     "is measured one by one.",
     "  weir bench graphs/lenet.weir.yaml -p batch=64 --threads 1,2\n"
     "  weir bench deep.weir.yaml --no-fusion --format json --time 5s\n",
     bench_options, 1, 1, cli_bench},
    {"doctor", "[options]", "what this machine and process offer",
     "Prints the CPU's features, versions, limits and environment that matter "
     "to weir, with\na warning where one is too small.",
     "  weir doctor\n  weir doctor --json\n", plain_options, 0, 0, cli_doctor},
    {"explain", "ID", "what an error id means", NULL,
     "  weir explain W2012\n  weir explain W0003 --json\n", plain_options, 1, 1,
     cli_explain},
    {"version", "[options]", "version of weir and of what it was built with",
     NULL, "  weir version\n  weir version --json\n", plain_options, 0, 0,
     cli_version},
    {"help", "[COMMAND]", "this list, or a command's help", NULL,
     "  weir help run\n  weir help --man > weir.1\n", help_options, 0, 1,
     cli_help},
    {NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL}};

size_t cli_command_count(void) {
  return sizeof cli_commands / sizeof cli_commands[0] - 1;
}

const cli_command *cli_command_find(const char *name) {
  for (const cli_command *c = cli_commands; c->name != NULL; c++)
    if (strcmp(c->name, name) == 0) return c;
  return NULL;
}
