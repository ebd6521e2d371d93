/* What EFA says of a work request that failed; see srd_status.h. */
#include "backend_real/srd_status.h"

static const struct {
  enum srd_status status;
  const char *why;
} codes[] = {
    [1] = {SRD_BROKEN, "its queue pair was flushed"},
    [2] = {SRD_BROKEN, "its queue pair failed"},
    [3] = {SRD_BROKEN, "its NIC does not know the operation"},
    [4] = {SRD_LOST, "the peer's address is not good any more"},
    [5] = {SRD_BROKEN, "a local key is not good"},
    [6] = {SRD_BROKEN, "a work request is too long"},
    [7] = {SRD_DENIED, "the peer's NIC refused key or address, or is down"},
    [8] = {SRD_LOST, "the peer's NIC gave up"},
    [9] = {SRD_LOST, "the peer's queue pair is gone"},
    [10] = {SRD_LOST, "the peer has no receive buffer"},
    [11] = {SRD_LOST, "the peer's receive buffer is too short"},
    [12] = {SRD_LOST, "the peer's NIC answered something unknown"},
    [13] = {SRD_LOST, "the peer does not answer (does its security group let all traffic through?)"},
    [14] = {SRD_LOST, "the peer has no address of this NIC"},
    [15] = {SRD_LOST, "the peer cannot be reached (security group, subnet?)"},
};

enum srd_status srd_status_of(uint32_t code, gboolean flushed, const char **why)
{
  if (code > 0 && code < G_N_ELEMENTS(codes)) {
    *why = codes[code].why;
    return codes[code].status;
  }
  *why = flushed ? "its queue pair was flushed" : "its NIC reports an error that is not known";
  return flushed ? SRD_BROKEN : SRD_LOST;
}
