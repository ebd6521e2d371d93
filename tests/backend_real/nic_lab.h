/* NICs and a ground (nic_choose.h) made up for a test. */
#ifndef NIC_LAB_H
#define NIC_LAB_H

#include "backend_real/nic_choose.h"

struct nic_lab {
  GPtrArray *nics;
  struct nic_ground ground;
};
typedef struct nic_lab NicLab; /* for g_autoptr */

NicLab *nic_lab_new(void);
void nic_lab_free(NicLab *lab);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NicLab, nic_lab_free)

/* A port, on PCI address pci ("" = none); its GIDs as "INDEX TYPE ADDRESS" separated by commas, TYPE one of 1
 * and 2 (RoCE), i (InfiniBand). The distance from it to a device is the difference of their buses. */
struct nic *lab_roce(NicLab *lab, const char *device, const char *pci, const char *gids);
struct nic *lab_infiniband(NicLab *lab, const char *device, const char *pci, const char *gids);
struct nic *lab_efa(NicLab *lab, const char *device, const char *pci, const char *gids);
/* This machine's address "ADDRESS/BITS"; port_gid: of the InfiniBand port below it, or NULL. */
void lab_address(NicLab *lab, const char *address, const char *port_gid);

/* What is chosen, as "DEVICE:PORT/GID …"; else the error, as "! MESSAGE". Free with g_free. */
char *lab_choose(NicLab *lab, const struct nic_wish *wish);

#endif
