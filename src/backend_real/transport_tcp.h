/* The TCP transport: two ends, one file each (transport_tcp_shelf.c, transport_tcp_reader.c). See
 * transport.h for what the functions do. */
#ifndef DM_TRANSPORT_TCP_H
#define DM_TRANSPORT_TCP_H

#include "backend_real/transport.h"

extern const struct transport_ops transport_tcp;

/* Threads of one end, where nobody says how many. */
uint32_t tcp_threads(void);

struct shelf *tcp_shelf_new(const struct shelf_config *config, GError **error);
void tcp_shelf_free(struct shelf *shelf);
const char *tcp_shelf_address(const struct shelf *shelf);
void tcp_shelf_serve(struct shelf *shelf, uint32_t model, uint64_t offset, uint64_t bytes,
                     const struct ranges *place);
void tcp_shelf_admit(struct shelf *shelf, actor_id reader, const struct ticket_secret *secret);
void tcp_shelf_expel(struct shelf *shelf, actor_id reader);
uint64_t tcp_shelf_bytes(const struct shelf *shelf);
void tcp_shelf_state(struct shelf *shelf, struct transport_state *state);

struct reader *tcp_reader_new(const struct reader_config *config, GError **error);
void tcp_reader_free(struct reader *reader);
void tcp_reader_peer(struct reader *reader, uint32_t server, const char *address,
                     const struct ticket_secret *secret);
void tcp_reader_drop(struct reader *reader, uint32_t server);
void tcp_reader_read(struct reader *reader, uint32_t server, uint32_t model, uint64_t offset, uint64_t to,
                     uint32_t bytes, uint64_t tag);
uint64_t tcp_reader_bytes(const struct reader *reader);
void tcp_reader_state(struct reader *reader, struct transport_state *state);

#endif
