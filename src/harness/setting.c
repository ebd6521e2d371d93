/* Values of settings: from text into the field of a struct; see setting.h. */
#include "harness/setting.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/units.h"
#include "harness/nearest.h"

enum { LABEL_BYTES = 64 };

gboolean number_parse(const char *text, double min, double max, double *value, GError **error)
{
  char *end = NULL;
  gboolean decimal = *text && strspn(text, "0123456789+-.eE") == strlen(text);
  double number = decimal ? g_ascii_strtod(text, &end) : 0;
  if (!decimal || end == text || *end || !isfinite(number) || number < min || number > max)
    return input_error(error, NULL, 0, "expected a number from %g to %g, found \"%s\"", min, max, text);
  *value = number;
  return TRUE;
}

gboolean integer_parse(const char *text, guint64 min, guint64 max, guint64 *value, GError **error)
{
  if (g_ascii_isdigit(*text) && g_ascii_string_to_unsigned(text, 10, min, max, value, NULL))
    return TRUE;
  return input_error(error, NULL, 0,
                     "expected a whole number from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                     ", found \"%s\"",
                     min, max, text);
}

static gboolean choice_apply(const struct setting *setting, int *field, const char *text, GError **error)
{
  for (int i = 0; setting->choices[i]; i++)
    if (g_str_equal(setting->choices[i], text)) {
      *field = i;
      return TRUE;
    }
  g_autofree char *all = g_strjoinv(" | ", (char **)setting->choices);
  return input_error(error, NULL, 0, "expected %s, found \"%s\"; nearest is \"%s\"", all, text,
                     nearest_word(text, setting->choices));
}

static gboolean label_apply(char *field, const char *text, GError **error)
{
  if (strlen(text) >= LABEL_BYTES || strchr(text, '/') || *text == '.')
    return input_error(error, NULL, 0, "expected a name of under %d bytes without \"/\", found \"%s\"",
                       LABEL_BYTES, text);
  g_strlcpy(field, text, LABEL_BYTES);
  return TRUE;
}

static void text_apply(char **field, const char *text)
{
  g_free(*field);
  *field = g_str_equal(text, "none") ? NULL : g_strdup(text);
}

static gboolean integer_apply(const struct setting *setting, void *field, const char *text, GError **error)
{
  guint64 value;
  guint64 max = setting->max >= 18446744073709551615.0 ? G_MAXUINT64 : (guint64)setting->max;
  if (!integer_parse(text, (guint64)setting->min, max, &value, error))
    return FALSE;
  if (setting->kind == SETTING_UINT32)
    *(uint32_t *)field = (uint32_t)value;
  else
    *(uint64_t *)field = value;
  return TRUE;
}

static gboolean real_apply(const struct setting *setting, void *field, const char *text, GError **error)
{
  double value;
  if (!number_parse(text, setting->min, setting->max, &value, error))
    return FALSE;
  value *= setting->scale > 0 ? setting->scale : 1;
  if (setting->kind == SETTING_REAL)
    *(double *)field = value;
  else if (setting->kind == SETTING_TIME)
    *(int64_t *)field = ns_round(value);
  else
    *(uint64_t *)field = (uint64_t)(value + 0.5);
  return TRUE;
}

gboolean setting_apply(const struct setting *setting, void *base, const char *text, GError **error)
{
  void *field = (char *)base + setting->offset;
  switch (setting->kind) {
  case SETTING_TEXT:
    text_apply(field, text);
    return TRUE;
  case SETTING_LABEL:
    return label_apply(field, text, error);
  case SETTING_CHOICE:
    return choice_apply(setting, field, text, error);
  case SETTING_UINT32:
  case SETTING_UINT64:
    return integer_apply(setting, field, text, error);
  case SETTING_REAL:
  case SETTING_TIME:
  case SETTING_BYTES:
    return real_apply(setting, field, text, error);
  case SETTING_CUSTOM:
    return setting->custom(setting, base, text, error);
  }
  g_assert_not_reached();
}

const struct setting *setting_find(const struct setting *table, const char *section, const char *key)
{
  for (const struct setting *row = table; row->key; row++)
    if (g_str_equal(row->key, key) && (!section || g_str_equal(row->section, section)))
      return row;
  return NULL;
}
