/* Lines of [events]: servers that fail, leave or join, and values that change, in mid-run; see
 * experiment_parts.h. */
#include "harness/experiment_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "harness/hardware_file.h"
#include "harness/nearest.h"

enum { WORDS_MAX = 8, EVENTS_MAX = 1024 };

static const char event_form[] =
    "expected at TIME_S fail|remove gpu_server|memory_server INDEX, at TIME_S add "
    "gpu_server|memory_server COUNT [of HARDWARE] or at TIME_S set cluster.KEY VALUE";
static const char *const event_kinds[] = {
    [EVENT_FAIL] = "fail", [EVENT_REMOVE] = "remove", [EVENT_ADD] = "add", [EVENT_SET] = "set", NULL};
static const char *const member_kinds[] = {
    [MEMBER_GPU_SERVER] = "gpu_server", [MEMBER_MEMORY_SERVER] = "memory_server", NULL};
static const char *const changeable[] = {"cluster.nic_gbit_s", "cluster.memory_nic_gbit_s",
                                         "cluster.pcie_gbyte_s", "cluster.host_cache_gb", NULL};

static int word_of(const char *const *words, const char *text)
{
  for (int i = 0; words[i]; i++)
    if (g_str_equal(words[i], text))
      return i;
  return -1;
}

/* Words of a line, without empty ones; at most WORDS_MAX, the last NULL. */
static char **words_of(const char *text)
{
  g_auto(GStrv) parts = g_strsplit_set(text, " \t", 64);
  char **words = g_new0(char *, WORDS_MAX + 1);
  for (guint i = 0, count = 0; parts[i] && count < WORDS_MAX; i++)
    if (*parts[i])
      words[count++] = g_strdup(parts[i]);
  return words;
}

/* words: "cluster.KEY" VALUE */
static gboolean set_parse(char **words, struct experiment_event *event, GError **error)
{
  if (word_of(changeable, words[0]) < 0)
    return input_error(error, NULL, 0,
                       "expected a key that may change in mid-run, found \"%s\"; nearest is \"%s\"", words[0],
                       nearest_word(words[0], changeable));
  const char *key = strchr(words[0], '.') + 1;
  const struct setting *row = setting_find(hardware_settings, NULL, key);
  if (!row)
    row = setting_find(experiment_settings, "cluster", key);
  if (!words[1] || words[2])
    return input_error(error, NULL, 0, "%s after \"set\"", event_form);
  if (!number_parse(words[1], row->min, row->max, &event->value, error))
    return FALSE;
  event->key = g_strdup(words[0]);
  return TRUE;
}

/* words: KIND NUMBER [of HARDWARE] */
static gboolean member_parse(char **words, struct experiment_event *event, char **hardware, GError **error)
{
  int member = word_of(member_kinds, words[0]);
  guint64 number;
  if (member < 0)
    return input_error(error, NULL, 0, "expected gpu_server | memory_server, found \"%s\"; nearest is \"%s\"",
                       words[0], nearest_word(words[0], member_kinds));
  event->member = (enum member_kind)member;
  if (!words[1] || !integer_parse(words[1], event->kind == EVENT_ADD, EXPERIMENT_SERVERS_MAX, &number, error))
    return words[1] ? FALSE : input_error(error, NULL, 0, "%s", event_form);
  event->number = (uint32_t)number;
  if (!words[2])
    return TRUE;
  if (event->kind != EVENT_ADD || event->member != MEMBER_GPU_SERVER || !g_str_equal(words[2], "of") ||
      !words[3] || words[4])
    return input_error(error, NULL, 0, "%s, found \"%s\" after it", event_form, words[2]);
  *hardware = g_strdup(words[3]);
  return TRUE;
}

static gboolean event_parse(const char *text, struct experiment_event *event, char **hardware, GError **error)
{
  g_auto(GStrv) words = words_of(text);
  guint count = g_strv_length(words);
  double seconds;
  if (count < 5 || !g_str_equal(words[0], "at"))
    return input_error(error, NULL, 0, "%s, found \"%s\"", event_form, text);
  if (!number_parse(words[1], 0, 1e9, &seconds, error))
    return FALSE;
  event->at_ns = ns_round(seconds * 1e9);
  int kind = word_of(event_kinds, words[2]);
  if (kind < 0)
    return input_error(error, NULL, 0, "expected fail | remove | add | set, found \"%s\"; nearest is \"%s\"",
                       words[2], nearest_word(words[2], event_kinds));
  event->kind = (enum event_kind)kind;
  return event->kind == EVENT_SET ? set_parse(&words[3], event, error)
                                  : member_parse(&words[3], event, hardware, error);
}

static gboolean event_add(struct draft *draft, const struct layers *layers, const struct given *given,
                          GError **error)
{
  struct experiment *experiment = &draft->experiment;
  g_autoptr(GError) inner = NULL;
  g_autofree char *hardware = NULL;
  if (experiment->events == EVENTS_MAX)
    return given_error(layers, given, error, "expected at most %d events", EVENTS_MAX);
  /* Counted before it is complete, so that experiment_free finds what it owns. */
  struct experiment_event *event = &experiment->event[experiment->events++];
  event->name = g_strdup(given->key);
  if (!event_parse(given->value, event, &hardware, &inner))
    return given_error(layers, given, error, "event \"%s\": %s", given->key, inner->message);
  event->hw = experiment->pool[0].hw;
  int index = hardware ? draft_hardware(draft, layers, given, hardware, error) : (int)event->hw;
  event->hw = (uint32_t)index;
  return index >= 0;
}

/* An insertion sort: few events, and equal times keep the order of the file. */
static void events_sort(struct experiment *experiment)
{
  for (uint32_t i = 1; i < experiment->events; i++) {
    struct experiment_event event = experiment->event[i];
    uint32_t j = i;
    for (; j > 0 && experiment->event[j - 1].at_ns > event.at_ns; j--)
      experiment->event[j] = experiment->event[j - 1];
    experiment->event[j] = event;
  }
}

/* Servers of one kind as the events go by: numbers are given once and never used again. */
struct census {
  uint32_t known;
  gboolean gone[EXPERIMENT_SERVERS_MAX];
};

static gboolean census_follow(struct census *census, const struct experiment_event *event,
                              const struct layers *layers, GError **error)
{
  const char *kind = member_kinds[event->member];
  if (event->kind == EVENT_ADD) {
    if (event->number > EXPERIMENT_SERVERS_MAX - census->known)
      return layers_error(layers, "events", event->name, error,
                          "event \"%s\": expected at most %d servers in all", event->name,
                          EXPERIMENT_SERVERS_MAX);
    census->known += event->number;
    return TRUE;
  }
  if (event->number >= census->known)
    return layers_error(layers, "events", event->name, error,
                        "event \"%s\": expected a %s below %u, found %u", event->name, kind, census->known,
                        event->number);
  if (census->gone[event->number])
    return layers_error(layers, "events", event->name, error, "event \"%s\": %s %u has left before",
                        event->name, kind, event->number);
  census->gone[event->number] = TRUE;
  return TRUE;
}

static gboolean events_check(const struct experiment *experiment, const struct layers *layers, GError **error)
{
  g_autofree struct census *census = g_new0(struct census, G_N_ELEMENTS(member_kinds));
  census[MEMBER_MEMORY_SERVER].known = experiment->memory_servers;
  for (uint32_t i = 0; i < experiment->pools; i++)
    census[MEMBER_GPU_SERVER].known += experiment->pool[i].count;
  for (uint32_t i = 0; i < experiment->events; i++) {
    const struct experiment_event *event = &experiment->event[i];
    if (event->kind != EVENT_SET && !census_follow(&census[event->member], event, layers, error))
      return FALSE;
  }
  return TRUE;
}

gboolean draft_events(struct draft *draft, const struct layers *layers, GError **error)
{
  struct experiment *experiment = &draft->experiment;
  experiment->event = g_new0(struct experiment_event, EVENTS_MAX);
  for (guint i = 0; i < layers->given->len; i++) {
    const struct given *given = layers->given->pdata[i];
    if (g_str_equal(given->section, "events") && !event_add(draft, layers, given, error))
      return FALSE;
  }
  events_sort(experiment);
  return events_check(experiment, layers, error);
}
