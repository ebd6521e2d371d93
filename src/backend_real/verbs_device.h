/* An RDMA device opened by one end of the verbs transport: context, protection domain, what happens to it. */
#ifndef DM_VERBS_DEVICE_H
#define DM_VERBS_DEVICE_H

#include <infiniband/verbs.h>

#include "backend_real/nic.h"

struct verbs_device {
  struct ibv_context *context;
  struct ibv_pd *pd;
  struct nic nic; /* without its GIDs */
  struct nic_gid gid;
  char name[80];   /* "mlx5_0:1" */
  gboolean failed; /* the device told so: nothing made of it works any more */
};

/* DM_ERROR_FAILED: it is gone, or may not be opened. */
struct verbs_device *verbs_device_open(const struct nic *nic, const struct nic_gid *gid, GError **error);
/* All that was made of it is destroyed already. */
void verbs_device_close(struct verbs_device *device);

/* A channel for completions, whose descriptor never blocks; NULL: errno. */
struct ibv_comp_channel *verbs_device_channel(const struct verbs_device *device);
/* Takes in all that the channel of this queue has told. */
void verbs_device_drain(struct ibv_comp_channel *channel, struct ibv_cq *cq);

/* The next asynchronous event (its descriptor is context->async_fd, which never blocks). What concerns the
 * device or its port is logged, and may set `failed`. An error of a queue pair: *qp receives its context and
 * *why what it was (static), else NULL. FALSE: there is no event. */
gboolean verbs_device_event(struct verbs_device *device, void **qp, const char **why);

#endif
