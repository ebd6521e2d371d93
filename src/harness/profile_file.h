/* Profile files: experiments/profiles/GPU/MODEL.csv, `# key: value` lines, then
 * layer,kind,param_bytes,compute_us. */
#ifndef DM_PROFILE_FILE_H
#define DM_PROFILE_FILE_H

#include "core/model.h"
#include "harness/experiment.h"

/* Reads DIR/NAME.csv into a new profile (hw 0). Tensors: `# tensors:` or the layers with parameters. NULL +
 * error. */
struct profile *profile_load(const char *dir, const char *name, GError **error);
/* The same from memory; path is for messages only. */
struct profile *profile_parse(const char *path, const char *name, const char *text, gsize length,
                              GError **error);
/* Reads the same model as timed on another GPU into timing[hw]; the layers' bytes must be equal. */
gboolean profile_load_timing(struct profile *profile, const char *dir, uint32_t hw, GError **error);
/* The catalog of an experiment: every model set on every hardware kind, compute_scale applied; then, without
 * variants, the profile of a training model that no set names. A missing profile is an error at the model's
 * line. */
struct catalog *catalog_load(const struct experiment *experiment, GError **error);

#endif
