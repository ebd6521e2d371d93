/* What two processes that set up the same run must agree on; see setup.h. */
#include <string.h>

#include "harness/hardware_file.h"
#include "harness/setup.h"

static void digest_profile(GChecksum *sum, const struct profile *profile, uint32_t hw_count)
{
  g_checksum_update(sum, (const guchar *)profile->name, -1);
  g_checksum_update(sum, (const guchar *)profile->layer_bytes, (gssize)(profile->layers * sizeof(uint64_t)));
  for (uint32_t hw = 0; hw < hw_count; hw++)
    g_checksum_update(sum, (const guchar *)profile->timing[hw].layer_ns,
                      (gssize)(profile->layers * sizeof(double)));
}

static gssize field_size(const struct setting *row, const void *field)
{
  switch (row->kind) {
  case SETTING_UINT32:
    return sizeof(uint32_t);
  case SETTING_UINT64:
  case SETTING_BYTES:
  case SETTING_TIME:
    return sizeof(uint64_t);
  case SETTING_REAL:
    return sizeof(double);
  case SETTING_LABEL:
    return (gssize)strlen(field);
  default:
    return 0; /* mps_speedup stands apart; a hardware file has no other kind */
  }
}

/* Field by field: what lies between them is nobody's. */
static void digest_hardware(GChecksum *sum, const struct hardware *hw)
{
  for (const struct setting *row = hardware_settings; row->key; row++) {
    const guchar *field = (const guchar *)hw + row->offset;
    g_checksum_update(sum, field, field_size(row, field));
  }
  g_checksum_update(sum, (const guchar *)hw->mps_speedup, (gssize)(hw->mps_speedups * sizeof(double)));
}

uint64_t setup_digest(const struct setup *setup)
{
  g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
  guint8 digest[32];
  gsize length = sizeof digest;
  uint64_t first;
  g_checksum_update(sum, (const guchar *)setup->experiment->text, -1);
  g_checksum_update(sum, (const guchar *)setup->experiment->overrides, -1);
  g_checksum_update(sum, (const guchar *)setup->constants, -1);
  for (uint32_t hw = 0; hw < setup->config.hardware_count; hw++)
    digest_hardware(sum, &setup->config.hardware[hw]);
  digest_hardware(sum, &setup->config.memory_hardware);
  for (uint32_t p = 0; p < setup->catalog->profiles->len; p++)
    digest_profile(sum, setup->catalog->profiles->pdata[p], setup->catalog->hw_count);
  g_checksum_get_digest(sum, digest, &length);
  memcpy(&first, digest, sizeof first);
  return first;
}
