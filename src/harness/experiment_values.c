/* Lists and choices of an experiment; see experiment_values.h. */
#include "harness/experiment_values.h"

#include <string.h>

#include "core/error.h"
#include "harness/experiment_schema.h"
#include "harness/nearest.h"

enum { PHASES_MAX = 1024 };

static const char own_choice[] = "default";
static const char *const balancers[] = {"default",     "cache_aware",    "least_loaded",
                                        "round_robin", "pinned",         "multiplexed",
                                        "processes",   "earliest_start", NULL};
static const char *const caches[] = {"default", "weighted", "lru", NULL};
static const char *const yields[] = {"default", "layer", "step", NULL};

/* Index of text in words, -1 + error. */
static int word_index(const char *const *words, const char *text, GError **error)
{
  for (int i = 0; words[i]; i++)
    if (g_str_equal(words[i], text))
      return i;
  g_autofree char *all = g_strjoinv(" | ", (char **)words);
  input_error(error, NULL, 0, "expected %s, found \"%s\"; nearest is \"%s\"", all, text,
              nearest_word(text, words));
  return -1;
}

/* Any text, "none" too: one of that name is as good as others. */
gboolean name_apply(const struct setting *setting, void *base, const char *text, GError **error)
{
  struct experiment *experiment = base;
  (void)setting;
  (void)error;
  g_free(experiment->name);
  experiment->name = g_strdup(text);
  return TRUE;
}

gboolean systems_apply(const struct setting *setting, void *base, const char *text, GError **error)
{
  struct experiment *experiment = base;
  (void)setting;
  g_auto(GStrv) names = g_strsplit(text, ";", 64);
  for (guint i = 0; names[i]; i++) {
    g_strstrip(names[i]);
    if (word_index(experiment_systems, names[i], error) < 0)
      return FALSE;
    for (guint j = 0; j < i; j++)
      if (g_str_equal(names[i], names[j]))
        return input_error(error, NULL, 0, "expected each system once, found \"%s\" twice", names[i]);
  }
  g_strfreev(experiment->systems);
  experiment->systems = g_steal_pointer(&names);
  return TRUE;
}

gboolean staging_apply(const struct setting *setting, void *base, const char *text, GError **error)
{
  struct experiment *experiment = base;
  double gb;
  experiment->staging_bytes = -1;
  if (g_str_equal(text, "largest"))
    return TRUE;
  if (!number_parse(text, setting->min, setting->max, &gb, NULL))
    return input_error(error, NULL, 0, "expected \"largest\" or a number from %g to %g, found \"%s\"",
                       setting->min, setting->max, text);
  experiment->staging_bytes = (int64_t)(gb * setting->scale + 0.5);
  return TRUE;
}

static gboolean phase_parse(const char *text, struct active_phase *phase, GError **error)
{
  g_auto(GStrv) parts = g_strsplit(text, ":", 3);
  double seconds;
  guint64 slots;
  if (g_strv_length(parts) != 2 || !number_parse(g_strstrip(parts[0]), 1e-3, 1e6, &seconds, NULL) ||
      !integer_parse(g_strstrip(parts[1]), 0, G_MAXUINT32, &slots, NULL))
    return input_error(error, NULL, 0, "expected all or SECONDS:SLOTS;SECONDS:SLOTS, found \"%s\"", text);
  *phase = (struct active_phase){.duration_ns = ns_round(seconds * 1e9), .slots = (uint32_t)slots};
  return TRUE;
}

gboolean active_apply(const struct setting *setting, void *base, const char *text, GError **error)
{
  struct experiment *experiment = base;
  (void)setting;
  g_clear_pointer(&experiment->active, g_free);
  experiment->active_phases = 0;
  if (g_str_equal(text, "all"))
    return TRUE;
  g_auto(GStrv) items = g_strsplit(text, ";", PHASES_MAX + 1);
  guint count = g_strv_length(items);
  if (count > PHASES_MAX)
    return input_error(error, NULL, 0, "expected at most %d phases", PHASES_MAX);
  experiment->active = g_new0(struct active_phase, count);
  for (guint i = 0; i < count; i++)
    if (!phase_parse(items[i], &experiment->active[i], error))
      return FALSE;
  experiment->active_phases = count;
  return TRUE;
}

gboolean outstanding_apply(const struct setting *setting, void *base, const char *text, GError **error)
{
  struct experiment *experiment = base;
  guint64 clients = 0;
  (void)setting;
  if (!g_str_equal(text, "auto") && !integer_parse(text, 1, 1000000, &clients, NULL))
    return input_error(error, NULL, 0, "expected \"auto\" or a whole number from 1 to 1000000, found \"%s\"",
                       text);
  experiment->outstanding = (uint32_t)clients;
  return TRUE;
}

gboolean balancer_apply(const struct setting *setting, void *base, const char *text, GError **error)
{
  struct experiment *experiment = base;
  int index = word_index(balancers, text, error);
  (void)setting;
  if (index < 0)
    return FALSE;
  g_free(experiment->balancer);
  experiment->balancer = index ? g_strdup(text) : NULL;
  return TRUE;
}

gboolean cache_apply(const struct setting *setting, void *base, const char *text, GError **error)
{
  struct experiment *experiment = base;
  int index = word_index(caches, text, error);
  (void)setting;
  experiment->cache_set = index > 0;
  experiment->cache = index == 2 ? CACHE_LRU : CACHE_WEIGHTED;
  return index >= 0;
}

gboolean grouping_apply(const struct setting *setting, void *base, const char *text, GError **error)
{
  struct experiment *experiment = base;
  (void)setting;
  experiment->grouping_set = !g_str_equal(text, own_choice);
  return !experiment->grouping_set || grouping_policy_parse(text, &experiment->grouping, error);
}

gboolean sharding_apply(const struct setting *setting, void *base, const char *text, GError **error)
{
  struct experiment *experiment = base;
  (void)setting;
  experiment->sharding_set = !g_str_equal(text, own_choice);
  return !experiment->sharding_set || sharding_parse(text, &experiment->sharding, error);
}

gboolean yield_apply(const struct setting *setting, void *base, const char *text, GError **error)
{
  struct experiment *experiment = base;
  int index = word_index(yields, text, error);
  (void)setting;
  experiment->yield_set = index > 0;
  experiment->yield = index == 2 ? YIELD_STEP : YIELD_LAYER;
  return index >= 0;
}

gboolean requests_apply(const struct setting *setting, void *base, const char *text, GError **error)
{
  struct experiment *experiment = base;
  guint64 every = g_str_equal(text, "all");
  (void)setting;
  if (g_str_has_prefix(text, "sample:")) {
    if (!integer_parse(text + strlen("sample:"), 1, G_MAXUINT64, &every, error))
      return FALSE;
  } else if (!every && !g_str_equal(text, "none")) {
    return input_error(error, NULL, 0, "expected all | sample:N | none, found \"%s\"", text);
  }
  g_free(experiment->requests);
  experiment->requests = g_strdup(every == 0 ? "none" : g_str_equal(text, "all") ? "all" : "sample");
  experiment->requests_sample = every;
  return TRUE;
}
