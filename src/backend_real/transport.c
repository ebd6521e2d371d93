/* The transports that there are; see transport.h. */
#include "backend_real/transport.h"

#include <string.h>

#include "backend_real/transport_tcp.h"
#include "backend_real/transport_verbs.h"
#include "core/error.h"

static const struct transport_ops *const all_transports[] = {
    &transport_verbs,
    &transport_tcp,
    NULL,
};

#define READ_BYTES_LEAST (64ULL << 10)
#define READ_ALIGN       4096ULL

uint32_t transport_read_bytes(uint64_t length)
{
  const uint64_t lanes = TCP_CONNECTIONS;
  uint64_t rounds = (length - 1) / (lanes * READ_BYTES_MAX) + 1;
  uint64_t bytes = (length - 1) / (lanes * rounds) + 1;
  bytes += (READ_ALIGN - bytes % READ_ALIGN) % READ_ALIGN;
  return (uint32_t)MAX(bytes, READ_BYTES_LEAST);
}

const struct transport_ops *const *transports(void)
{
  return all_transports;
}

char *transports_usable(void)
{
  GString *names = g_string_new(NULL);
  for (const struct transport_ops *const *t = all_transports; *t; t++)
    if (!(*t)->missing())
      g_string_append_printf(names, "%s%s", names->len ? "," : "", (*t)->name);
  return g_string_free(names, FALSE);
}

static const struct transport_ops *first_usable(GError **error)
{
  g_autoptr(GString) why = g_string_new(NULL);
  for (const struct transport_ops *const *t = all_transports; *t; t++) {
    const char *missing = (*t)->missing();
    if (!missing)
      return *t;
    g_string_append_printf(why, "%s%s: %s", why->len ? "; " : "", (*t)->name, missing);
  }
  input_error(error, NULL, 0, "no transport can be used here (%s)", why->str);
  return NULL;
}

gboolean transport_name_check(const char *name, GError **error)
{
  g_autoptr(GString) names = g_string_new("auto");
  gboolean known = strcmp(name, "auto") == 0;
  for (const struct transport_ops *const *t = all_transports; *t; t++) {
    g_string_append_printf(names, ", %s", (*t)->name);
    known |= strcmp(name, (*t)->name) == 0;
  }
  return known || input_error(error, NULL, 0, "expected a transport (%s), found \"%s\"", names->str, name);
}

const struct transport_ops *transport_by_name(const char *name, GError **error)
{
  if (strcmp(name, "auto") == 0)
    return first_usable(error);
  for (const struct transport_ops *const *t = all_transports; *t; t++) {
    if (strcmp(name, (*t)->name) != 0)
      continue;
    const char *missing = (*t)->missing();
    if (!missing)
      return *t;
    input_error(error, NULL, 0, "transport %s cannot be used here: %s", name, missing);
    return NULL;
  }
  transport_name_check(name, error);
  return NULL;
}
