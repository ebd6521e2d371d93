/* Values of an experiment that are more than a number or a word: lists, and words that stand for a system's
 * own choice.
 *
 * Each function is a setting's `custom`: it reads text into the draft at base; FALSE + "expected ..., found
 * ...". */
#ifndef DM_EXPERIMENT_VALUES_H
#define DM_EXPERIMENT_VALUES_H

#include "harness/setting.h"

gboolean name_apply(const struct setting *setting, void *base, const char *text, GError **error);
gboolean systems_apply(const struct setting *setting, void *base, const char *text, GError **error);
gboolean staging_apply(const struct setting *setting, void *base, const char *text, GError **error);
gboolean active_apply(const struct setting *setting, void *base, const char *text, GError **error);
gboolean outstanding_apply(const struct setting *setting, void *base, const char *text, GError **error);
gboolean balancer_apply(const struct setting *setting, void *base, const char *text, GError **error);
gboolean cache_apply(const struct setting *setting, void *base, const char *text, GError **error);
gboolean grouping_apply(const struct setting *setting, void *base, const char *text, GError **error);
gboolean sharding_apply(const struct setting *setting, void *base, const char *text, GError **error);
gboolean yield_apply(const struct setting *setting, void *base, const char *text, GError **error);
gboolean requests_apply(const struct setting *setting, void *base, const char *text, GError **error);

#endif
