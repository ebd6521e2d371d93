/* The key-file reader: what it accepts keeps its promises. */
#include <stdint.h>
#include <string.h>

#include "harness/keyfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(Keyfile) keyfile = keyfile_parse("fuzz.ini", (const char *)data, size, &error);
  g_assert((keyfile == NULL) == (error != NULL));
  for (guint i = 0; keyfile && i < keyfile->sections->len; i++) {
    const struct keyfile_section *section = keyfile->sections->pdata[i];
    g_assert(keyfile_section(keyfile, section->name) == section);
    for (guint j = 0; j < section->entries->len; j++) {
      const struct keyfile_entry *entry = &g_array_index(section->entries, struct keyfile_entry, j);
      g_assert(*entry->key && *entry->value && !strchr(entry->value, '#'));
      g_assert(keyfile_entry(section, entry->key) == entry);
    }
  }
  return 0;
}
