/* The schema of experiment files: every section and key with type, unit, bounds, default and help, in one
 * table, and the draft that the rows fill.
 *
 * Values whose meaning depends on other files (hardware, paths) land in the draft as text and are resolved
 * afterwards. */
#ifndef DM_EXPERIMENT_SCHEMA_H
#define DM_EXPERIMENT_SCHEMA_H

#include "harness/experiment.h"
#include "harness/setting.h"

#define EXPERIMENT_SERVERS_MAX 4096
#define EXPERIMENT_MODELS_MAX  1000000

struct draft {
  struct experiment experiment; /* first, so that rows may address its fields */
  char *hardware, *gpu_servers, *memory_hardware, *profile_dir;
  char *hardware_path[EXPERIMENT_POOLS_MAX]; /* resolved, beside experiment.hardware */
  char *memory_hardware_path;
};

extern const struct setting experiment_settings[]; /* of struct draft; ends in a row with key NULL */
extern const char *const experiment_sections[];    /* NULL-terminated, in the order of --print-config */
extern const char *const experiment_systems[];     /* names of all systems; NULL-terminated */

#endif
