/* The TCP transport's operations; see transport_tcp.h. */
#include "backend_real/transport_tcp.h"

static const char *tcp_missing(void)
{
  return NULL;
}

uint32_t tcp_threads(const struct transport_options *options)
{
  if (options->threads)
    return options->threads;
  return options->connections ? MIN(options->connections, TCP_THREADS_MAX) : TCP_CONNECTIONS;
}

const struct transport_ops transport_tcp = {
    .name = "tcp",
    .missing = tcp_missing,
    .paces = TRUE,
    .shelf_new = tcp_shelf_new,
    .shelf_free = tcp_shelf_free,
    .shelf_address = tcp_shelf_address,
    .shelf_serve = tcp_shelf_serve,
    .shelf_admit = tcp_shelf_admit,
    .shelf_expel = tcp_shelf_expel,
    .shelf_bytes = tcp_shelf_bytes,
    .shelf_state = tcp_shelf_state,
    .reader_new = tcp_reader_new,
    .reader_free = tcp_reader_free,
    .reader_peer = tcp_reader_peer,
    .reader_drop = tcp_reader_drop,
    .reader_read = tcp_reader_read,
    .reader_bytes = tcp_reader_bytes,
    .reader_state = tcp_reader_state,
};
