/* Profile files: experiments/profiles/GPU/MODEL.csv, `# key: value` lines, then layer,kind,param_bytes,compute_us. */
#ifndef DM_PROFILE_FILE_H
#define DM_PROFILE_FILE_H

#include "core/model.h"
#include "harness/experiment.h"

/* Reads DIR/NAME.csv into a new profile (hw 0). Tensors: `# tensors:` or the layers with parameters. NULL + error. */
struct profile *profile_load(const char *dir, const char *name, GError **error);
/* Reads the same model as timed on another GPU into timing[hw]; the layers' bytes must be equal. */
gboolean profile_load_timing(struct profile *profile, const char *dir, uint32_t hw, GError **error);
/* The catalog of an experiment: every model set on every hardware kind, compute_scale applied. */
struct catalog *catalog_load(const struct experiment *experiment, GError **error);

#endif
