/* GIDs; see nic_gid.h. */
#include "backend_real/nic_gid.h"

#include <arpa/inet.h>
#include <string.h>

static const uint8_t ipv4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

gboolean address_is_ipv4(const uint8_t raw[16])
{
  return memcmp(raw, ipv4_prefix, sizeof ipv4_prefix) == 0;
}

gboolean address_is_loopback(const uint8_t raw[16])
{
  static const uint8_t any[16] = {0};
  if (address_is_ipv4(raw))
    return raw[12] == 127 || memcmp(raw + 12, any, 4) == 0;
  return memcmp(raw, any, 15) == 0 && raw[15] <= 1;
}

gboolean address_is_link_local(const uint8_t raw[16])
{
  return (raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80) ||
         (address_is_ipv4(raw) && raw[12] == 169 && raw[13] == 254);
}

gboolean address_shares(const uint8_t a[16], const uint8_t b[16], unsigned bits)
{
  bits = MIN(bits, 128);
  unsigned whole = bits / 8, rest = bits % 8;
  return memcmp(a, b, whole) == 0 && (rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0);
}

gboolean address_parse(const char *text, uint8_t raw[16])
{
  const char *scope = strchr(text, '%');
  g_autofree char *bare = scope ? g_strndup(text, scope - text) : g_strdup(text);
  memcpy(raw, ipv4_prefix, sizeof ipv4_prefix);
  return inet_pton(AF_INET, bare, raw + 12) == 1 || inet_pton(AF_INET6, bare, raw) == 1;
}

void nic_gid_text(const struct nic_gid *gid, char text[46])
{
  if (address_is_ipv4(gid->raw))
    inet_ntop(AF_INET, gid->raw + 12, text, 46);
  else
    inet_ntop(AF_INET6, gid->raw, text, 46);
}

unsigned nic_gid_rank(const struct nic_gid *gid, const uint8_t *local, unsigned bits)
{
  gboolean ipv4 = local ? address_is_ipv4(local) : TRUE;
  unsigned holds = local && memcmp(gid->raw, local, 16) == 0,
           near = local && address_shares(gid->raw, local, bits);
  unsigned family = address_is_ipv4(gid->raw) == ipv4, second = strcmp(gid->type, "RoCE v2") == 0;
  return (!holds << 4) + (!near << 3) + (!family << 2) + (!second << 1) + address_is_link_local(gid->raw);
}

const struct nic_gid *nic_best_gid(const struct nic *nic, const uint8_t *local, unsigned bits)
{
  const struct nic_gid *best = NULL;
  unsigned best_rank = 0;
  for (guint i = 0; i < nic->gids->len; i++) {
    const struct nic_gid *gid = &g_array_index(nic->gids, struct nic_gid, i);
    unsigned rank = nic->ethernet ? nic_gid_rank(gid, local, bits) : 0;
    if (!best || rank < best_rank || (rank == best_rank && gid->index < best->index)) {
      best = gid;
      best_rank = rank;
    }
  }
  return best;
}

const struct nic_gid *nic_gid_at(const struct nic *nic, uint32_t index)
{
  for (guint i = 0; i < nic->gids->len; i++)
    if (g_array_index(nic->gids, struct nic_gid, i).index == index)
      return &g_array_index(nic->gids, struct nic_gid, i);
  return NULL;
}
