/* A strict reader of metrics; see metrics_check.h. */
#include "metrics_check.h"

#include <criterion/criterion.h>
#include <string.h>

struct family {
  char *name, *type;
  gboolean typed;
  double bucket, count; /* of a histogram: the last bucket, the sample _count */
  gboolean infinite;    /* its last bucket was +Inf */
};

static gsize name_length(const char *text, gboolean colons)
{
  gsize n = 0;
  while (g_ascii_isalpha(text[n]) || text[n] == '_' || (colons && text[n] == ':') ||
         (n > 0 && g_ascii_isdigit(text[n])))
    n++;
  return n;
}

/* "NAME REST" after "# HELP " or "# TYPE ". */
static const char *split_name(const char *line, char **name)
{
  gsize n = name_length(line, TRUE);
  cr_assert(n > 0 && line[n] == ' ' && line[n + 1], "no name and text: %s", line);
  *name = g_strndup(line, n);
  return line + n + 1;
}

static void family_end(struct family *family)
{
  if (g_strcmp0(family->type, "histogram") == 0) {
    cr_assert(family->infinite, "%s has no bucket +Inf", family->name);
    cr_assert_eq(family->bucket, family->count, "%s: the bucket +Inf is not the count", family->name);
  }
  g_free(family->name);
  g_free(family->type);
  *family = (struct family){.name = NULL};
}

static void head_line(struct family *family, GHashTable *families, const char *line)
{
  g_autofree char *name = NULL;
  if (g_str_has_prefix(line, "# HELP ")) {
    family_end(family);
    split_name(line + 7, &family->name);
    cr_assert(g_hash_table_add(families, g_strdup(family->name)), "%s comes twice", family->name);
    return;
  }
  cr_assert(g_str_has_prefix(line, "# TYPE "), "neither HELP nor TYPE: %s", line);
  family->type = g_strdup(split_name(line + 7, &name));
  cr_assert(family->name && strcmp(name, family->name) == 0 && !family->typed, "TYPE out of place: %s", line);
  family->typed = TRUE;
  cr_assert(strcmp(family->type, "counter") == 0 || strcmp(family->type, "gauge") == 0 ||
                strcmp(family->type, "histogram") == 0,
            "no type that is used here: %s", line);
  cr_assert(g_str_has_suffix(name, "_total") == (strcmp(family->type, "counter") == 0),
            "counters end in _total, nothing else does: %s", line);
  cr_assert(strstr(name, "_ms") == NULL && strstr(name, "_kb") == NULL && strstr(name, "_ns") == NULL,
            "base units: %s", line);
}

/* {a="x",b="y"}; returns what follows. le: value of that label. */
static const char *labels(const char *at, const char *line, char **le)
{
  do {
    gsize n = name_length(++at, FALSE);
    gboolean is_le = n == 2 && strncmp(at, "le", 2) == 0;
    cr_assert(n > 0 && at[n] == '=' && at[n + 1] == '"', "no label: %s", line);
    const char *begin = at += n + 2;
    for (; *at != '"'; at++) {
      cr_assert(*at, "a label without an end: %s", line);
      if (*at == '\\')
        cr_assert(*++at && strchr("\\\"n", *at), "no escape: %s", line);
    }
    if (is_le)
      *le = g_strndup(begin, (gsize)(at - begin));
    at++;
  } while (*at == ',');
  cr_assert_eq(*at, '}', "labels without an end: %s", line);
  return at + 1;
}

/* A sample's name within its family. */
static void check_member(struct family *family, const char *name, const char *le, double value)
{
  gsize n = family->name ? strlen(family->name) : 0;
  cr_assert(family->typed && strncmp(name, family->name, n) == 0, "%s outside of its family", name);
  const char *rest = name + n;
  if (strcmp(family->type, "counter") == 0)
    cr_assert_geq(value, 0, "%s", name);
  if (strcmp(family->type, "histogram") != 0) {
    cr_assert(*rest == '\0' && !le, "%s outside of its family", name);
  } else if (strcmp(rest, "_bucket") == 0) {
    cr_assert(le && !family->infinite && value >= family->bucket, "%s: buckets do not grow", name);
    family->bucket = value;
    family->infinite = strcmp(le, "+Inf") == 0;
  } else if (strcmp(rest, "_count") == 0) {
    family->count = value;
  } else {
    cr_assert_str_eq(rest, "_sum");
  }
}

static void sample_line(struct family *family, GHashTable *samples, const char *line)
{
  gsize n = name_length(line, TRUE);
  g_autofree char *name = g_strndup(line, n), *le = NULL;
  char *end;
  cr_assert_gt(n, 0, "no sample: %s", line);
  const char *at = line[n] == '{' ? labels(line + n, line, &le) : line + n;
  char *key = g_strndup(line, (gsize)(at - line));
  cr_assert(at[0] == ' ' && at[1] && at[1] != ' ', "no value: %s", line);
  double *value = g_new(double, 1);
  *value = g_ascii_strtod(at + 1, &end);
  cr_assert_eq(*end, '\0', "no value: %s", line);
  check_member(family, name, le, *value);
  cr_assert(g_hash_table_insert(samples, key, value), "twice: %s", line);
}

GHashTable *metrics_check(const char *text)
{
  GHashTable *samples = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  g_autoptr(GHashTable) families = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
  guint count = g_strv_length(lines);
  struct family family = {.name = NULL};
  cr_assert(g_utf8_validate(text, -1, NULL));
  cr_assert(count > 1 && *lines[count - 1] == '\0', "the last line has no end");
  for (guint i = 0; i + 1 < count; i++)
    if (*lines[i] == '#')
      head_line(&family, families, lines[i]);
    else
      sample_line(&family, samples, lines[i]);
  family_end(&family);
  return samples;
}

double metrics_value(GHashTable *samples, const char *sample)
{
  const double *value = g_hash_table_lookup(samples, sample);
  cr_assert(value, "no %s", sample);
  return *value;
}

void metrics_check_grown(GHashTable *before, GHashTable *after)
{
  GHashTableIter at;
  gpointer name, value;
  g_hash_table_iter_init(&at, before);
  while (g_hash_table_iter_next(&at, &name, &value)) {
    g_autofree char *family = g_strndup(name, strcspn(name, "{"));
    if (g_str_has_suffix(family, "_total") || g_str_has_suffix(family, "_bucket"))
      cr_assert_geq(metrics_value(after, name), *(double *)value, "%s fell", (char *)name);
  }
}
