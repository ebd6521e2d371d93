/* GIDs and addresses as 16 bytes: what they hold, and which GID of a port to use. */
#ifndef DM_NIC_GID_H
#define DM_NIC_GID_H

#include "backend_real/nic.h"

/* From text, IPv4 or IPv6 (a scope after % is left out). FALSE: it is neither. */
gboolean address_parse(const char *text, uint8_t raw[16]);
gboolean address_is_ipv4(const uint8_t raw[16]);
gboolean address_is_loopback(const uint8_t raw[16]); /* 127.0.0.0/8, ::1, and "any" */
gboolean address_is_link_local(const uint8_t raw[16]);
/* The first `bits` are equal. */
gboolean address_shares(const uint8_t a[16], const uint8_t b[16], unsigned bits);

/* How well a RoCE GID serves for traffic from `local` (with `bits` of it the subnet's; NULL: from anywhere);
 * less is better. */
unsigned nic_gid_rank(const struct nic_gid *gid, const uint8_t *local, unsigned bits);
/* The best one of a port; InfiniBand and EFA: the one with the least index. NULL: it has none. */
const struct nic_gid *nic_best_gid(const struct nic *nic, const uint8_t *local, unsigned bits);
const struct nic_gid *nic_gid_at(const struct nic *nic, uint32_t index); /* NULL: none */

#endif
