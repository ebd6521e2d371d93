/* This machine's addresses and distances, which nics_choose decides by; see nic_choose.h. */
#include <ifaddrs.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <string.h>

#include "backend_real/nic_choose.h"
#include "backend_real/pci_map.h"
#include "backend_real/sysfs.h"

/* Bytes of an IP over InfiniBand device's hardware address: flags and queue pair, then the port's GID (RFC
 * 4391, section 9.1.1). */
#define IPOIB_BYTES 20

static unsigned ones(const uint8_t *mask, size_t size)
{
  unsigned bits = 0;
  for (size_t i = 0; i < size; i++)
    bits += (unsigned)__builtin_popcount(mask[i]);
  return bits;
}

static gboolean read_address(const struct ifaddrs *from, struct nic_address *address)
{
  if (from->ifa_addr && from->ifa_addr->sa_family == AF_INET) {
    const struct sockaddr_in *in = (const void *)from->ifa_addr, *mask = (const void *)from->ifa_netmask;
    memset(address->raw + 10, 0xff, 2);
    memcpy(address->raw + 12, &in->sin_addr, 4);
    address->prefix = 96 + (mask ? ones((const void *)&mask->sin_addr, 4) : 32);
    return TRUE;
  }
  if (from->ifa_addr && from->ifa_addr->sa_family == AF_INET6) {
    const struct sockaddr_in6 *in = (const void *)from->ifa_addr, *mask = (const void *)from->ifa_netmask;
    memcpy(address->raw, &in->sin6_addr, 16);
    address->prefix = mask ? ones((const void *)&mask->sin6_addr, 16) : 128;
    return TRUE;
  }
  return FALSE;
}

static void read_port_gid(const char *netdev, struct nic_address *address)
{
  int64_t type;
  if (!sysfs_number("", &type, "/sys/class/net/%s/type", netdev) || type != ARPHRD_INFINIBAND)
    return;
  g_autofree char *text = sysfs_text("", "/sys/class/net/%s/address", netdev);
  g_auto(GStrv) byte = g_strsplit(text ? text : "", ":", -1);
  if (g_strv_length(byte) != IPOIB_BYTES)
    return;
  for (unsigned i = 0; i < 16; i++)
    address->port_gid[i] = (uint8_t)g_ascii_strtoull(byte[IPOIB_BYTES - 16 + i], NULL, 16);
  address->has_port_gid = TRUE;
}

GArray *nic_addresses(void)
{
  GArray *addresses = g_array_new(FALSE, FALSE, sizeof(struct nic_address));
  struct ifaddrs *list = NULL;
  if (getifaddrs(&list) != 0)
    return addresses;
  for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
    struct nic_address address = {{0}};
    if (!read_address(at, &address))
      continue;
    read_port_gid(at->ifa_name, &address);
    g_array_append_val(addresses, address);
  }
  freeifaddrs(list);
  return addresses;
}

static unsigned distance_here(const struct nic *nic, const char *pci)
{
  return pci_map_distance(pci_map_here(), nic->pci, pci);
}

GArray *nics_choose(GPtrArray *nics, const struct nic_wish *wish, GError **error)
{
  g_autoptr(GArray) addresses = nic_addresses();
  const struct nic_ground ground = {addresses, distance_here};
  return nics_choose_on(&ground, nics, wish, error);
}
