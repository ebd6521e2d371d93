/* The TCP transport: two ends, one file each (transport_tcp_shelf.c, transport_tcp_reader.c). See
 * transport.h for what the functions do.
 *
 * Measured over loopback, 1 MiB reads (tests/bench/bench_real_tcp.c): one thread copies some 5 GB/s at either
 * end, so a peer gets TCP_CONNECTIONS connections and an end as many threads: 15 GB/s on 16 cores, a fifth
 * more than plain threads with send and recv. What is under way (LINE_WINDOW a connection) covers the
 * bandwidth-delay product of 100 Gbit/s and 300 us; four times as much costs a sixth more processor time,
 * since the bytes that wait no longer lie in a cache. Buffers of sockets are left to the kernel: bounding
 * them was no faster there, and would bound a real link. */
#ifndef DM_TRANSPORT_TCP_H
#define DM_TRANSPORT_TCP_H

#include "backend_real/transport.h"

extern const struct transport_ops transport_tcp;

#define TCP_CONNECTIONS 4  /* to a peer, where nobody says how many */
#define TCP_THREADS_MAX 16 /* of one end, likewise */

/* Threads of one end. */
uint32_t tcp_threads(const struct transport_options *options);

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
void tcp_reader_read(struct reader *reader, const struct transport_read *what);
uint64_t tcp_reader_bytes(const struct reader *reader);
void tcp_reader_state(struct reader *reader, struct transport_state *state);

#endif
