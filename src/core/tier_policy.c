/* Cache policies of a tier; one line in the registry adds one. See tier.h. */
#include "core/tier.h"

#include <string.h>

/* Time unused rather than the time of the last use, so that the value of a decision record is free of the
 * clock. */
static double lru_value(const struct tier_entry *entry, int64_t now_ns)
{
  return (double)(entry->last_use_ns - now_ns);
}

/* What a gigabyte of this entry saves, in ns: expected uses x time to bring it back / size. That is the
 * frequency x cost / size of GreedyDual-Size-Frequency (L. Cherkasova, "Improving WWW proxies performance
 * with Greedy-Dual-Size-Frequency caching policy", HP Labs 1998), which DistMind's cache of models follows
 * too; where GDSF ages entries by a rising clock that is added to the value, here the frequency itself
 * decays, also while a model is absent. */
static double weighted_value(const struct tier_entry *entry, int64_t now_ns)
{
  (void)now_ns;
  return entry->popularity * entry->reload_ns / (entry->bytes ? (double)entry->bytes : 1) * BYTES_PER_GB;
}

const struct tier_policy tier_policy_lru = {.name = "lru", .value = lru_value, .recency = TRUE};
const struct tier_policy tier_policy_weighted = {.name = "weighted", .value = weighted_value, .counts = TRUE};

static const struct tier_policy *const policies[] = {&tier_policy_lru, &tier_policy_weighted};

const struct tier_policy *tier_policy_by_name(const char *name)
{
  for (size_t i = 0; i < G_N_ELEMENTS(policies); i++)
    if (strcmp(policies[i]->name, name) == 0)
      return policies[i];
  return NULL;
}
