/* Log; see log.h. */
#include "backend_real/log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "backend_real/control.h"
#include "core/error.h"
#include "harness/json_writer.h"
#include "harness/shown.h"

#define FIELDS_MAX 32 /* of a message, and those of the process */

static const struct {
  const char *name;
  GLogLevelFlags least;
} levels[] = {{"error", G_LOG_LEVEL_CRITICAL},
              {"warning", G_LOG_LEVEL_WARNING},
              {"info", G_LOG_LEVEL_INFO},
              {"debug", G_LOG_LEVEL_DEBUG}};

static const char *const domains[] = {"roles", "control", "transport", "metrics", "GLib", "GLib-GIO"};

/* Read by the writer, which threads call; set once, before they begin, except for the run. */
static struct {
  GLogLevelFlags least[G_N_ELEMENTS(domains)], others;
  gboolean json;
  const char *role; /* NULL: no role's */
  char index[16];
  gint run; /* atomic */
} config = {.others = G_LOG_LEVEL_WARNING};

static const char *field(const GLogField *fields, gsize count, const char *key)
{
  for (gsize i = 0; i < count; i++)
    if (g_str_equal(fields[i].key, key))
      return fields[i].value;
  return NULL;
}

static const char *level_name(GLogLevelFlags level)
{
  for (size_t i = 0; i < G_N_ELEMENTS(levels); i++)
    if ((level & G_LOG_LEVEL_MASK) <= levels[i].least)
      return levels[i].name;
  return "debug";
}

static GLogLevelFlags least_of(const char *domain)
{
  for (size_t i = 0; i < G_N_ELEMENTS(domains); i++)
    if (g_str_equal(domain ? domain : "roles", domains[i]))
      return config.least[i];
  return config.others;
}

/* --- lines
 * ----------------------------------------------------------------------------------------------------------*/

static void write_text(GLogLevelFlags level, const GLogField *fields, gsize count)
{
  const char *domain = field(fields, count, "GLIB_DOMAIN"), *text = field(fields, count, "MESSAGE");
  g_autoptr(GDateTime) now = g_date_time_new_now_local();
  g_autofree char *time = g_date_time_format(now, "%H:%M:%S.%f");
  g_autofree char *shown = shown_text(text ? text : "");
  fprintf(stderr, "%.12s %s %s%s%s[%d]%s%s: %s\n", time, level_name(level),
          config.role ? config.role : g_get_prgname(), config.role ? " " : "", config.index, (int)getpid(),
          domain ? " " : "", domain ? domain : "", shown);
}

/* Fields that are no text, and GLib's own of what stands elsewhere, are left out. */
static void json_field(struct json_writer *json, const GLogField *f)
{
  if (f->length >= 0 || g_str_equal(f->key, "PRIORITY") || g_str_has_prefix(f->key, "CODE_") ||
      g_str_equal(f->key, "GLIB_OLD_LOG_API"))
    return;
  g_autofree char *key = g_ascii_strdown(g_str_equal(f->key, "GLIB_DOMAIN") ? "domain" : f->key, -1);
  json_string_at(json, key, f->value);
}

static void write_json(GLogLevelFlags level, const GLogField *fields, gsize count)
{
  char *line = NULL;
  size_t size;
  FILE *memory = open_memstream(&line, &size);
  if (!memory) {
    write_text(level, fields, count);
    return;
  }
  g_autoptr(GDateTime) now = g_date_time_new_now_utc();
  g_autofree char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%S.%fZ");
  struct json_writer *json = json_writer_new_stream(memory);
  json_object_open(json);
  json_string_at(json, "time", time);
  json_string_at(json, "level", level_name(level));
  json_integer_at(json, "pid", (uint64_t)getpid());
  for (gsize i = 0; i < count; i++)
    json_field(json, &fields[i]);
  json_object_close(json);
  json_writer_free(json);
  putc('\n', memory);
  fclose(memory);
  fwrite(line, 1, size, stderr); /* in one piece: processes share the stream */
  free(line);
}

static GLogWriterOutput write_line(GLogLevelFlags level, const GLogField *fields, gsize count, gpointer data)
{
  (void)data;
  GLogField all[FIELDS_MAX];
  char run[16];
  if ((level & G_LOG_LEVEL_MASK) > least_of(field(fields, count, "GLIB_DOMAIN")))
    return G_LOG_WRITER_HANDLED;
  count = MIN(count, FIELDS_MAX - 3);
  memcpy(all, fields, count * sizeof *all);
  if (config.role) {
    all[count++] = (GLogField){"ROLE", config.role, -1};
    all[count++] = (GLogField){"INDEX", config.index, -1};
  }
  gint number = g_atomic_int_get(&config.run);
  g_snprintf(run, sizeof run, "%u", (guint)number);
  if (number != 0)
    all[count++] = (GLogField){"RUN", run, -1};
  if (g_log_writer_is_journald(STDERR_FILENO))
    return g_log_writer_journald(level, all, count, NULL);
  (config.json ? write_json : write_text)(level, all, count);
  return G_LOG_WRITER_HANDLED;
}

/* --- setting up
 * ------------------------------------------------------------------------------------------------------------*/

static gboolean level_find(const char *name, GLogLevelFlags *least, GError **error)
{
  for (size_t i = 0; i < G_N_ELEMENTS(levels); i++)
    if (g_str_equal(name, levels[i].name)) {
      *least = levels[i].least;
      return TRUE;
    }
  return input_error(error, NULL, 0, "--log: expected error, warning, info or debug, found \"%s\"", name);
}

static gboolean domain_set(const char *word, GError **error)
{
  const char *equals = strchr(word, '=');
  g_autofree char *name = equals ? g_strndup(word, (gsize)(equals - word)) : NULL;
  for (size_t i = 0; name && i < G_N_ELEMENTS(domains); i++)
    if (g_str_equal(name, domains[i]))
      return level_find(equals + 1, &config.least[i], error);
  return input_error(
      error, NULL, 0,
      "--log: expected DOMAIN=LEVEL after the comma, with roles, control, transport, metrics, GLib "
      "or GLib-GIO as DOMAIN, found \"%s\"",
      word);
}

gboolean log_setup(const char *text, const char *format, GError **error)
{
  g_auto(GStrv) words = g_strsplit(text, ",", -1);
  if (format && !g_str_equal(format, "text") && !g_str_equal(format, "json"))
    return input_error(error, NULL, 0, "--log-format: expected text or json, found \"%s\"", format);
  config.json = format && g_str_equal(format, "json");
  if (!level_find(words[0] ? words[0] : "", &config.others, error))
    return FALSE;
  for (size_t i = 0; i < G_N_ELEMENTS(domains); i++)
    config.least[i] = config.others;
  for (char **word = words + 1; *word; word++)
    if (!domain_set(*word, error))
      return FALSE;
  g_log_set_writer_func(write_line, NULL, NULL);
  return TRUE;
}

void log_process(actor_id self)
{
  config.role = peer_name(self);
  g_snprintf(config.index, sizeof config.index, "%u", ACTOR_INDEX(self));
}

void log_run(uint32_t run)
{
  g_atomic_int_set(&config.run, (gint)run);
}
