/* What passes the seam, in words: for the one line that says where a rerun differs; see seam_form.h. */
#include <string.h>

#include "harness/seam_fields.h"

#define LIST_SHOWN 4 /* of a list's entries in a text */

char *seam_actor_name(actor_id actor)
{
  static const char *const kinds[] = {"client", "controller", "gpu-server", "memory-server"};
  uint32_t kind = ACTOR_KIND(actor);
  if (kind >= G_N_ELEMENTS(kinds))
    return g_strdup_printf("actor %u", actor);
  if (kind == ACTOR_CLIENT || kind == ACTOR_CONTROLLER)
    return g_strdup(kinds[kind]);
  return g_strdup_printf("%s %u", kinds[kind], ACTOR_INDEX(actor));
}

/* --- one field
 * ------------------------------------------------------------------------------------------------------*/

static void text_message(GString *out, const struct message *message)
{
  switch (message->type) {
#define F(type, field, bound)                                                                                \
  g_string_append_printf(out, "%s%s %" G_GINT64_FORMAT, first ? "" : " ", #field, (gint64)m->field);         \
  first = FALSE;
#define M(TYPE, name, fields)                                                                                \
  case MESSAGE_##TYPE: {                                                                                     \
    const struct message_##name *m = &message->name;                                                         \
    gboolean first = TRUE;                                                                                   \
    g_string_append(out, #name " (");                                                                        \
    fields g_string_append_c(out, ')');                                                                      \
    break;                                                                                                   \
  }
    MESSAGE_TABLE(M)
#undef M
#undef F
  case MESSAGE_TYPES:
    break;
  }
}

static void text_letter(GString *out, struct octets_view *v)
{
  static const struct message_limits all = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
                                            UINT32_MAX, UINT32_MAX, UINT32_MAX};
  struct message message;
  uint64_t size = view_number(v);
  const uint8_t *bytes = view_bytes(v, size);
  if (bytes && message_decode(bytes, (size_t)size, &all, &message))
    text_message(out, &message);
  else
    g_string_append(out, "no message");
}

static void text_ranges(GString *out, struct octets_view *v)
{
  uint64_t count = view_number(v);
  if (count == 0) {
    g_string_append(out, "none");
    return;
  }
  g_string_append_c(out, '[');
  for (uint64_t i = 0; i + 1 < count && v->good; i++) {
    uint64_t offset = view_number(v), length = view_number(v);
    if (i < LIST_SHOWN)
      g_string_append_printf(out, "%s%" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT, i ? " " : "", offset, length);
  }
  g_string_append_printf(out, count - 1 > LIST_SHOWN ? " … %" G_GUINT64_FORMAT " in all]" : "]", count - 1);
}

static void text_plan(GString *out, struct octets_view *v)
{
  uint64_t size = view_number(v);
  const uint8_t *bytes = view_bytes(v, size);
  if (!bytes)
    return;
  struct octets_view inner = octets_view_of(bytes, (size_t)size);
  uint64_t groups = view_number(&inner), streams = view_number(&inner), total = view_number(&inner);
  g_string_append_printf(
      out, "%" G_GUINT64_FORMAT " groups from %" G_GUINT64_FORMAT " servers, %" G_GUINT64_FORMAT " bytes",
      groups, streams, total);
}

static void text_servers(GString *out, struct octets_view *v)
{
  uint64_t count = view_number(v);
  g_string_append_c(out, '[');
  for (uint64_t i = 0; i < count && v->good; i++)
    g_string_append_printf(out, "%s%u", i ? " " : "", view_small(v));
  g_string_append_c(out, ']');
}

static void text_layers(GString *out, struct octets_view *v)
{
  uint64_t count = view_number(v);
  double sum = 0;
  for (uint64_t i = 0; i < count && v->good; i++)
    sum += view_real(v);
  g_string_append_printf(out, "%" G_GUINT64_FORMAT " layers of %.17g ns", count, sum);
}

static void text_index(GString *out, uint32_t index)
{
  if (index == NO_INDEX)
    g_string_append(out, "none");
  else
    g_string_append_printf(out, "%u", index);
}

static void text_field(GString *out, enum seam_field_kind kind, struct octets_view *v)
{
  switch (kind) {
  case SEAM_U32:
    text_index(out, view_small(v));
    break;
  case SEAM_U64:
    g_string_append_printf(out, "%" G_GUINT64_FORMAT, view_number(v));
    break;
  case SEAM_I64:
    g_string_append_printf(out, "%" G_GINT64_FORMAT, view_signed(v));
    break;
  case SEAM_REAL:
    g_string_append_printf(out, "%.17g", view_real(v));
    break;
  case SEAM_ACTOR: {
    g_autofree char *name = seam_actor_name(view_small(v));
    g_string_append(out, name);
    break;
  }
  case SEAM_RANGES:
    text_ranges(out, v);
    break;
  case SEAM_LETTER:
    text_letter(out, v);
    break;
  case SEAM_PLAN:
    text_plan(out, v);
    break;
  case SEAM_SERVERS:
    text_servers(out, v);
    break;
  case SEAM_LAYERS:
    text_layers(out, v);
    break;
  }
}

/* --- a whole form
 * ---------------------------------------------------------------------------------------------------*/

char *seam_text(enum seam_kind kind, const uint8_t *data, size_t size)
{
  GString *out = g_string_new(seam_name(kind));
  struct octets_view v = octets_view_of(data, size);
  if ((unsigned)kind >= SEAM_KINDS)
    return g_string_free(out, FALSE);
  for (const struct seam_field *f = seam_fields[kind]; f->name && v.good; f++) {
    g_string_append_printf(out, "%s %s ", f == seam_fields[kind] ? "" : ",", f->name);
    text_field(out, f->kind, &v);
  }
  return g_string_free(out, FALSE);
}

/* Both views stand at the field; equal fields are stepped over. */
static char *field_difference(const struct seam_field *f, struct octets_view *expected,
                              struct octets_view *found)
{
  const uint8_t *at_expected = expected->at, *at_found = found->at;
  g_autoptr(GString) was = g_string_new(NULL), is = g_string_new(NULL);
  text_field(was, f->kind, expected);
  text_field(is, f->kind, found);
  size_t size = (size_t)(expected->at - at_expected);
  if (size == (size_t)(found->at - at_found) && memcmp(at_expected, at_found, size) == 0)
    return NULL;
  gboolean inside = strcmp(was->str, is->str) == 0; /* in a part that the text leaves out */
  return g_strdup_printf("%s: expected %s, found %s%s", f->name, was->str, inside ? "others of " : "",
                         is->str);
}

char *seam_difference(enum seam_kind kind, const uint8_t *expected, size_t expected_size,
                      const uint8_t *found, size_t found_size)
{
  struct octets_view was = octets_view_of(expected, expected_size), is = octets_view_of(found, found_size);
  for (const struct seam_field *f = seam_fields[kind]; f->name; f++) {
    char *difference = field_difference(f, &was, &is);
    if (difference)
      return difference;
  }
  return was.at == was.end && is.at == is.end ? NULL : g_strdup("expected another length");
}
