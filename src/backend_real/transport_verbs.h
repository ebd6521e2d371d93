/* The verbs transport: RDMA READ out of the shelf's registered memory into the reader's, which no processor
 * at the shelf takes part in. See transport.h for what the functions do.
 *
 *   transport_verbs_shelf.c    who may read: letters of readers, their lines
 *   transport_verbs_rails.c    which of the shelf's NICs serves which line
 *   transport_verbs_serve.c    what may be read: regions and their registrations
 *   transport_verbs_reader.c   peers and the NICs on the way to them
 *   transport_verbs_peer.c     letters of shelves; lines opened and closed
 *   transport_verbs_give.c     which read goes over which line, and how it ends
 *   transport_verbs_poll.c     the reader's thread
 *   transport_verbs_letter.c   what goes over the control plane
 *   verbs_queue.h              what is below: NICs, registered memory, queues
 *
 * Of transport_options it takes rdma_device, gid_given and gid_index; connections are lines to a peer,
 * rounded up to a multiple of the reader's NICs; threads means nothing to it: an end has one, which sleeps
 * while nothing is under way. It cannot pace. */
#ifndef DM_TRANSPORT_VERBS_H
#define DM_TRANSPORT_VERBS_H

#include <poll.h>

#include "backend_real/transport.h"
#include "backend_real/verbs_queue.h"

extern const struct transport_ops transport_verbs;

/* What `options` ask for that this transport cannot do, or TRUE. */
gboolean verbs_options_good(const struct transport_options *options, gboolean can_post, GError **error);
/* The NICs to use on the way from own address `local` (NULL: any). nics: nics_list(). */
GArray *verbs_choose(GPtrArray *nics, const struct transport_options *options, const char *local,
                     const char *pci, GError **error); /* of struct nic_choice */

/* What poll(2) is to watch of an end, in fds [VERBS_FDS]. Returns how many. */
uint32_t verbs_watch(const struct verbs_end *end, struct pollfd *fds);

struct shelf *verbs_shelf_new(const struct shelf_config *config, GError **error);
void verbs_shelf_free(struct shelf *shelf);
const char *verbs_shelf_address(const struct shelf *shelf);
void verbs_shelf_serve(struct shelf *shelf, uint32_t model, uint64_t offset, uint64_t bytes,
                       const struct ranges *place);
const char *verbs_shelf_failure(struct shelf *shelf);
void verbs_shelf_admit(struct shelf *shelf, actor_id reader, const struct ticket_secret *secret);
void verbs_shelf_expel(struct shelf *shelf, actor_id reader);
void verbs_shelf_letter(struct shelf *shelf, actor_id reader, const uint8_t *letter, size_t size);
uint64_t verbs_shelf_bytes(const struct shelf *shelf);
void verbs_shelf_state(struct shelf *shelf, struct transport_state *state);

struct reader *verbs_reader_new(const struct reader_config *config, GError **error);
void verbs_reader_free(struct reader *reader);
void verbs_reader_peer(struct reader *reader, uint32_t server, const char *address,
                       const struct ticket_secret *secret);
void verbs_reader_drop(struct reader *reader, uint32_t server);
void verbs_reader_letter(struct reader *reader, uint32_t server, const uint8_t *letter, size_t size);
void verbs_reader_read(struct reader *reader, const struct transport_read *what);
uint64_t verbs_reader_bytes(const struct reader *reader);
void verbs_reader_state(struct reader *reader, struct transport_state *state);

#endif
