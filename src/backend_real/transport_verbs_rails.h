/* Which of a shelf's NICs, its rails, serves which line of a reader's.
 *
 * Where each rail is a network of its own, the two ends of a line must be in one subnet. Where several rails
 * are in one, all of them are to be used, and like to like, since fabrics of several rails often join the
 * first NICs of all machines by one switch, the second ones by another. */
#ifndef DM_TRANSPORT_VERBS_RAILS_H
#define DM_TRANSPORT_VERBS_RAILS_H

#include "backend_real/nic_choose.h"

struct rail {
  uint8_t gid[16];
  unsigned bits;  /* of the GID that its subnet shares; 128: not known */
  uint32_t lines; /* that it has, of all readers */
};

/* bits of a NIC that was chosen. addresses: this machine's, of struct nic_address. */
unsigned rail_bits(const struct nic_choice *choice, const GArray *addresses);

/* For each of a reader's lines, from a NIC with the GID from[i]: chosen[i], a rail. Of those in the NIC's
 * subnet (if there is none: of all) the one with the fewest of these lines; of equal ones the first, or, for
 * a reader with one NIC, that with the fewest lines in all. So a reader with as many NICs as the shelf in one
 * subnet has its i-th served by the shelf's i-th. */
void rails_pair(const struct rail *rail, uint32_t rails, const uint8_t (*from)[16], uint32_t lines,
                uint8_t *chosen);

#endif
