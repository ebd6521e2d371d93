/* Rails and lines; see transport_verbs_rails.h. */
#include "backend_real/transport_verbs_rails.h"

#include <string.h>

#include "backend_real/nic_gid.h"
#include "backend_real/transport_verbs_letter.h"

/* Of InfiniBand and EFA, and of link-local addresses: the subnet prefix. */
#define PREFIX_BITS 64

unsigned rail_bits(const struct nic_choice *choice, const GArray *addresses)
{
  if (!choice->nic->ethernet || address_is_link_local(choice->gid.raw))
    return PREFIX_BITS;
  for (guint i = 0; i < addresses->len; i++) {
    const struct nic_address *address = &g_array_index(addresses, struct nic_address, i);
    if (memcmp(address->raw, choice->gid.raw, sizeof address->raw) == 0)
      return address->prefix;
  }
  return 128;
}

/* A subnet of one address says nothing about others. */
static gboolean reaches(const struct rail *rail, const uint8_t from[16])
{
  return rail->bits < 128 && address_shares(rail->gid, from, rail->bits);
}

static gboolean any_reaches(const struct rail *rail, uint32_t rails, const uint8_t from[16])
{
  for (uint32_t r = 0; r < rails; r++)
    if (reaches(&rail[r], from))
      return TRUE;
  return FALSE;
}

static gboolean has_one_nic(const uint8_t (*from)[16], uint32_t lines)
{
  for (uint32_t i = 1; i < lines; i++)
    if (memcmp(from[0], from[i], sizeof from[0]) != 0)
      return FALSE;
  return TRUE;
}

void rails_pair(const struct rail *rail, uint32_t rails, const uint8_t (*from)[16], uint32_t lines,
                uint8_t *chosen)
{
  uint32_t given[VERBS_RAILS_MAX] = {0};
  gboolean balance = has_one_nic(from, lines);
  for (uint32_t i = 0; i < lines; i++) {
    gboolean all = !any_reaches(rail, rails, from[i]);
    uint32_t best = rails;
    for (uint32_t r = 0; r < rails; r++) {
      if (!all && !reaches(&rail[r], from[i]))
        continue;
      if (best == rails || given[r] < given[best] ||
          (balance && given[r] == given[best] && rail[r].lines < rail[best].lines))
        best = r;
    }
    given[best]++;
    chosen[i] = (uint8_t)best;
  }
}
