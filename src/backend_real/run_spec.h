/* What the processes of a run tell one another beside the core's messages: payloads of the control plane's
 * frames (control.h), as GVariants in normal form: whatever a peer sends, they parse into something of the
 * right type or into nothing. */
#ifndef DM_RUN_SPEC_H
#define DM_RUN_SPEC_H

#include "backend_real/control.h"
#include "backend_real/ticket.h"
#include "core/config.h"
#include "harness/setup.h"
#include "harness/usage.h"

/* BEGIN and PREPARE: the run to be. Every process reads the experiment itself; digest says whether all read
 * the same. */
struct run_spec {
  uint32_t run;
  char *experiment, *system;
  char **sets;
  char *device, *transport; /* names or "auto" */
  double pace_gbit_s;       /* 0 = not paced */
  char *image_folder;       /* of packed images, "" = none */
  gboolean share_gpus;      /* servers of one machine may share its GPUs */
  gboolean records;         /* send records to the client */
};
void run_spec_clear(struct run_spec *spec);
GBytes *run_spec_pack(const struct run_spec *spec);
gboolean run_spec_unpack(const uint8_t *data, size_t size, struct run_spec *spec);

/* Reads the experiment and sets it up as this process is told. Keeps both: free setup first. */
gboolean run_spec_load(const struct run_spec *spec, struct experiment **experiment, struct setup **setup,
                       GError **error);

/* READY of a server: what it found, for the user (as much of the text as fits); where its shelf listens. Of
 * the hub to the client: all of them. */
struct run_ready {
  uint32_t run;
  uint64_t digest;
  char *address; /* "" = none */
  char *text;    /* "gpu-server 0: 1 x NVIDIA H200, tcp, huge pages" */
};
void run_ready_clear(struct run_ready *ready);
GBytes *run_ready_pack(const struct run_ready *ready);
gboolean run_ready_unpack(const uint8_t *data, size_t size, struct run_ready *ready);

/* GO to a server: the pool's addresses, with the secrets of this server as a reader; GRANT to a memory
 * server: a reader's secret.
 */
struct run_peer {
  uint32_t server;
  char address[108];
  struct ticket_secret secret;
};
GBytes *run_peers_pack(uint32_t run, const GArray *peers); /* of struct run_peer */
GArray *run_peers_unpack(const uint8_t *data, size_t size, uint32_t *run);
GBytes *run_grant_pack(uint32_t run, actor_id reader, const struct ticket_secret *secret);
gboolean run_grant_unpack(const uint8_t *data, size_t size, uint32_t *run, actor_id *reader,
                          struct ticket_secret *secret);

/* LETTER: what the transport of a reader writes to that of a shelf, or back. To the hub, peer is whom it is
 * for; from the hub, whom it is from. */
struct run_letter {
  uint32_t run;
  actor_id peer;
  gboolean to_shelf;
  const uint8_t *bytes; /* [size], at most LETTER_BYTES_MAX */
  size_t size;
};
GBytes *run_letter_pack(const struct run_letter *letter);
/* Bytes point into *hold, which is the caller's to unref. */
gboolean run_letter_unpack(const uint8_t *data, size_t size, struct run_letter *letter, GVariant **hold);

/* METERED, ENDED: what a server has used. failure: "" or why the run is no good (a wrong byte). */
#define FAILURE_BYTES 1024
struct run_meter {
  uint32_t run, number; /* of the METER that asked */
  uint64_t jobs_left, jobs_seen;
  struct usage usage;
  char failure[FAILURE_BYTES];
};
GBytes *run_meter_pack(const struct run_meter *meter);
gboolean run_meter_unpack(const uint8_t *data, size_t size, struct run_meter *meter);

/* FAILED of a server: it cannot take part, and why (as much of the text as fits). */
GBytes *run_failed_pack(uint32_t run, const char *text);
gboolean run_failed_unpack(const uint8_t *data, size_t size, uint32_t *run, char **text); /* g_free */

/* Payloads of one or two numbers: METER (run, number), END, GRANTED and REVOKE (run, reader). */
GBytes *run_numbers_pack(uint32_t run, uint32_t number);
gboolean run_numbers_unpack(const uint8_t *data, size_t size, uint32_t *run, uint32_t *number);

#endif
