/* The command `model` by parts (`model show` …), so that a program can add parts of its own to the harness's.
 */
#ifndef DM_COMMAND_MODEL_H
#define DM_COMMAND_MODEL_H

#include "harness/command.h"

struct model_part {
  const char *name;
  gboolean (*run)(int argc, char **argv, GError **error); /* argv[0]: "model"; the part's name is taken out */
};

/* Runs the part that the arguments name. parts end with a NULL name. */
gboolean model_run(const struct model_part *parts, int argc, char **argv, GError **error);

/* `model show`. */
gboolean model_show(int argc, char **argv, GError **error);

#define MODEL_SHOW_USAGE                                                                                     \
  "model show PROFILE [--grouping G] [--hardware H] [--source remote|host] [--path host|gpudirect]\n"        \
  "                  [--memory-servers N] [--memory-hardware H] [--json]\n"

#define MODEL_SHOW_HELP                                                                                      \
  "show: cuts a profile into groups and predicts when each has passed the network, PCIe and compute, alone " \
  "on the\n"                                                                                                 \
  "cluster, by the formulas of the design's section 3 (control latency not included).\n"                     \
  "\n"                                                                                                       \
  "  PROFILE               a model of experiments/profiles/GPU, GPU as the hardware says, or a FILE.csv\n"   \
  "  --grouping G          per-layer, fixed:BYTES, count:N, per-app or optimal (default)\n"                  \
  "  --hardware H          experiments/hardware/H.ini or a path; default p3dn\n"                             \
  "  --source S            remote or host; default both\n"                                                   \
  "  --path P              of the remote source: through host memory (default), or gpudirect, straight "     \
  "into "                                                                                                    \
  "GPU memory\n"                                                                                             \
  "  --memory-servers N    default 4, with hybrid sharding\n"                                                \
  "  --memory-hardware H   of the memory servers; default as --hardware\n"                                   \
  "  --json                one JSON object\n"                                                                \
  "\n"                                                                                                       \
  "Examples:\n"                                                                                              \
  "  distmind-sim model show resnet152 --hardware h200\n"                                                    \
  "  distmind-sim model show bert_base --grouping fixed:16777216 --source remote\n"                          \
  "  distmind-sim model show bert_base --hardware h200 --source remote --path gpudirect\n"

#endif
