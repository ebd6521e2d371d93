/* What EFA says of a work request that failed. */
#ifndef DM_SRD_STATUS_H
#define DM_SRD_STATUS_H

#include "backend_real/srd_device.h"

/* code: the device's own, which its driver passes on as vendor_err (enum efa_io_comp_status of its sources);
 * what the driver makes of it as a status differs from version to version. flushed: that status is "flushed".
 * Not SRD_OK. *why: static. A code that is not known costs the one peer alone. */
enum srd_status srd_status_of(uint32_t code, gboolean flushed, const char **why);

#endif
