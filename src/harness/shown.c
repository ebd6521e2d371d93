/* Showing any bytes as text; see shown.h. */
#include "harness/shown.h"

#include <string.h>

static void append_bytes(GString *out, const char *bytes, gsize count)
{
  for (gsize i = 0; i < count; i++)
    g_string_append_printf(out, "\\x%02x", (guint8)bytes[i]);
}

char *shown_text(const char *text)
{
  GString *out = g_string_new(NULL);
  while (*text) {
    gunichar character = g_utf8_get_char_validated(text, -1);
    gboolean valid = character < 0x110000; /* else it is one of two signs of an error */
    gsize bytes = valid ? (gsize)g_unichar_to_utf8(character, NULL) : 1;
    if (valid && !g_unichar_iscntrl(character))
      g_string_append_len(out, text, (gssize)bytes);
    else
      append_bytes(out, text, bytes);
    text += bytes;
  }
  return g_string_free(out, FALSE);
}

char *shown_cut(const char *text, gsize most)
{
  char *valid = g_utf8_make_valid(text, -1);
  if (strlen(valid) > most)
    *g_utf8_find_prev_char(valid, valid + most + 1) = '\0';
  return valid;
}
