/* By what a sweep is told from another; see sweep.h. */
#include "backend_sim/sweep_part.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#include "backend_sim/command_run.h"
#include "core/error.h"
#include "harness/setting.h"

/* A trace is known by its length and its ends: reading all of a large one would take longer than a task. */
#define ENDS_BYTES (1 << 20)
/* Values of an axis of words whose inputs are read. */
#define DIGESTED_VALUES 64

static void digest_ends(GChecksum *sum, const char *path)
{
  GStatBuf info;
  FILE *file = path ? g_fopen(path, "rb") : NULL;
  if (!file)
    return;
  g_autofree char *bytes = g_malloc(ENDS_BYTES);
  if (g_stat(path, &info) == 0) {
    g_autofree char *size = g_strdup_printf("%" G_GINT64_FORMAT, (gint64)info.st_size);
    g_checksum_update(sum, (const guchar *)size, -1);
    g_checksum_update(sum, (const guchar *)bytes, (gssize)fread(bytes, 1, ENDS_BYTES, file));
    if (info.st_size > ENDS_BYTES && fseeko(file, info.st_size - ENDS_BYTES, SEEK_SET) == 0)
      g_checksum_update(sum, (const guchar *)bytes, (gssize)fread(bytes, 1, ENDS_BYTES, file));
  }
  fclose(file);
}

/* Profiles, hardware files and traces of a point, for the first system. One that cannot be set up fails by
 * itself. */
static void digest_point(GChecksum *sum, const struct sweep *sweep, const guint *index)
{
  g_auto(GStrv) sets = sweep_sets_at(sweep, index);
  g_autoptr(Experiment) e = experiment_load(sweep->experiment, sweep->systems[0], sets, NULL);
  g_autoptr(Setup) setup =
      e ? setup_new(e, sim_backend.capabilities, sim_backend.needs_heartbeats(e), NULL) : NULL;
  if (setup) {
    uint64_t digest = setup_digest(setup);
    g_checksum_update(sum, (const guchar *)&digest, sizeof digest);
  }
  if (e) {
    digest_ends(sum, e->workload == WORKLOAD_TRACE ? e->trace : NULL);
    digest_ends(sum, e->train_trace);
  }
}

/* Words may name files; numbers do not. */
static gboolean has_words(const struct axis *axis)
{
  for (char **value = axis->values; *value; value++)
    if (!number_parse(*value, -G_MAXDOUBLE, G_MAXDOUBLE, &(double){0}, NULL))
      return TRUE;
  return FALSE;
}

static char *inputs_digest(const struct sweep *sweep)
{
  g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
  g_autofree guint *index = g_new0(guint, sweep->axes->len + 1);
  digest_point(sum, sweep, index);
  for (guint i = 0; i < sweep->axes->len; i++) {
    const struct axis *axis = sweep->axes->pdata[i];
    for (index[i] = 1; has_words(axis) && index[i] < MIN(axis->count, DIGESTED_VALUES); index[i]++)
      digest_point(sum, sweep, index);
    index[i] = 0;
  }
  return g_strndup(g_checksum_get_string(sum), 16);
}

void sweep_facts_init(struct sweep *sweep, const struct experiment *base)
{
  sweep->facts = sweep_facts_new();
  g_autofree char *text = g_compute_checksum_for_string(G_CHECKSUM_SHA256, base->text, -1);
  g_autofree char *inputs = inputs_digest(sweep);
  g_autofree char *sets = g_strjoinv(" ", sweep->sets);
  g_autofree char *systems = g_strjoinv(",", sweep->systems);
  text[16] = '\0';
  sweep_fact_add(sweep->facts, "program version", program_version());
  sweep_fact_add(sweep->facts, "experiment file", text);
  sweep_fact_add(sweep->facts, "settings", sets);
  sweep_fact_add(sweep->facts, "systems", systems);
  for (guint i = 0; i < sweep->axes->len; i++) {
    const struct axis *axis = sweep->axes->pdata[i];
    g_autofree char *values = axis_text(axis);
    g_autofree char *vary = g_strconcat(axis->key, "=", values, NULL);
    sweep_fact_add(sweep->facts, "--vary", vary);
  }
  sweep_fact_add(sweep->facts, "profiles, hardware or trace", inputs);
  g_autofree char *count = g_strdup_printf("%" G_GUINT64_FORMAT, sweep->count);
  sweep_fact_add(sweep->facts, "tasks", count);
}

gboolean sweep_facts_same(const GArray *ours, const GArray *theirs, const char *path, GError **error)
{
  static const char *const advice = "give another --out, or --force to begin anew";
  for (guint i = 0; i < MAX(ours->len, theirs->len); i++) {
    const struct sweep_fact *a = i < ours->len ? &g_array_index(ours, struct sweep_fact, i) : NULL;
    const struct sweep_fact *b = i < theirs->len ? &g_array_index(theirs, struct sweep_fact, i) : NULL;
    if (!a || !b || !g_str_equal(a->name, b->name))
      return input_error(error, path, 0, "is of a sweep with other --vary options; %s", advice);
    if (!g_str_equal(a->value, b->value))
      return input_error(error, path, 0, "is of another sweep: %s was \"%s\", is now \"%s\"; %s", a->name,
                         b->value, a->value, advice);
  }
  return TRUE;
}

char *sweep_facts_text(const GArray *facts)
{
  GString *text = g_string_new(NULL);
  for (guint i = 0; i < facts->len; i++) {
    const struct sweep_fact *fact = &g_array_index(facts, struct sweep_fact, i);
    g_string_append_printf(text, "%s: %s\n", fact->name, fact->value);
  }
  return g_string_free(text, FALSE);
}

/* No name has a colon, and no value a line end: settings may not contain control characters. */
GArray *sweep_facts_read(const char *text)
{
  GArray *facts = sweep_facts_new();
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
  for (char **line = lines; *line; line++) {
    char *colon = strstr(*line, ": ");
    if (!colon)
      continue;
    *colon = '\0';
    sweep_fact_add(facts, *line, colon + 2);
  }
  return facts;
}
