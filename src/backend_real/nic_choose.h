/* What nics_choose (nic.h) decides by, given as plain data: so it is tested without RDMA and without a
 * network. */
#ifndef DM_NIC_CHOOSE_H
#define DM_NIC_CHOOSE_H

#include "backend_real/nic.h"

/* An address of a network device of this machine. IPv4 as ::ffff:a.b.c.d, here and in GIDs. */
struct nic_address {
  uint8_t raw[16];
  unsigned prefix;       /* bits of raw that its subnet shares */
  gboolean has_port_gid; /* the network device is IP over InfiniBand: */
  uint8_t port_gid[16];  /* GID of the port under it */
};

struct nic_ground {
  GArray *addresses; /* of struct nic_address */
  /* How far the NIC is from a PCI device; less is nearer. */
  unsigned (*distance)(const struct nic *nic, const char *pci);
};

/* The addresses of this machine. */
GArray *nic_addresses(void); /* of struct nic_address; unref frees it */

/* nics_choose on that ground. */
GArray *nics_choose_on(const struct nic_ground *ground, GPtrArray *nics, const struct nic_wish *wish,
                       GError **error);

#endif
