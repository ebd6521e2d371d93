/* The kinds of queues; see verbs_queue.h. */
#include "backend_real/verbs_queue.h"

const struct verbs_queue_ops *verbs_queue_ops(enum nic_kind kind)
{
  return kind == NIC_RC ? &verbs_rc : NULL;
}
