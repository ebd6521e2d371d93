/* The steps that turn given values into an experiment, each in a file of its own; experiment.c runs them in
 * this order.
 *
 * Each fills its part of the draft or returns FALSE + DM_ERROR_INPUT at the line that gave the value. */
#ifndef DM_EXPERIMENT_PARTS_H
#define DM_EXPERIMENT_PARTS_H

#include "harness/experiment_layers.h"
#include "harness/experiment_schema.h"

/* experiment_hardware.c: pools, their hardware kinds, the memory servers' hardware. */
gboolean draft_pools(struct draft *draft, const struct layers *layers, GError **error);
/* The index of a hardware kind named at given (NULL: by a default), read in if it is new; -1 + error. */
int draft_hardware(struct draft *draft, const struct layers *layers, const struct given *given,
                   const char *name, GError **error);
/* [cluster] keys of hardware files, and the folders of profiles; after all hardware kinds are known. */
gboolean draft_overrides(struct draft *draft, const struct layers *layers, GError **error);
gboolean draft_profiles(struct draft *draft, const struct layers *layers, GError **error);

/* experiment_events.c: the lines of [events], sorted by time, then by their order in the file. */
gboolean draft_events(struct draft *draft, const struct layers *layers, GError **error);

/* experiment_check.c: what one value demands of another. */
gboolean draft_check(struct draft *draft, const struct layers *layers, GError **error);

/* experiment.c: all steps. The draft owns its experiment. NULL + error. */
struct draft *draft_build(const struct keyfile *keyfile, const struct layers *layers, const char *system,
                          char **sets, GError **error);
void draft_free(struct draft *draft);
typedef struct draft Draft; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Draft, draft_free)

/* The key file of an experiment: of a name that is not there, the shipped one (resolve_path). */
struct keyfile *experiment_keyfile(const char *path, GError **error);
/* experiment_load of a key file in memory. */
struct experiment *experiment_parse(const struct keyfile *keyfile, const char *system, char **sets,
                                    GError **error);

/* Splits `COUNT*HARDWARE`; *hardware is NULL for a plain count. FALSE if text is neither. */
gboolean pool_split(const char *text, uint32_t *count, char **hardware);

#endif
