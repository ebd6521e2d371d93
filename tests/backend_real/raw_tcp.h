/* A reader of the TCP transport that writes its frames by hand, so that it can write them wrongly. Its
 * sockets wait 20 s at most for what they receive. */
#ifndef RAW_TCP_H
#define RAW_TCP_H

#include "transport_lab.h"

/* A connection to the lab's shelf; the caller closes it. */
int raw_to(const struct lab *lab);
/* To one that may have closed already. */
void raw_send(int fd, const void *data, size_t size);
void raw_ticket(int fd, const struct ticket_secret *secret, uint32_t reader, uint32_t shelf, uint32_t model,
                uint64_t serial);
void raw_request(int fd, uint32_t model, uint64_t offset, uint32_t bytes, uint64_t id);
/* The answer is whole and right. */
gboolean raw_answered(int fd, uint32_t model, uint64_t offset, uint32_t bytes, uint64_t id);
/* The other end has closed it, and sent nothing. */
gboolean raw_closed(int fd);

#endif
