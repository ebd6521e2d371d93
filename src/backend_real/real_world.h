/* world.h on real hardware: one actor in one process, on the loop's thread.
 *
 * The controller's and the client's worlds have clock, timers and mail only; a memory server's has a shelf
 * and a reader besides, a GPU server's a reader and a device. Operations live in slabs; an id tells a used
 * slot from its next use. Ends that come on foreign threads are notes to the loop. */
#ifndef DM_REAL_WORLD_H
#define DM_REAL_WORLD_H

#include "backend_real/device.h"
#include "backend_real/host_memory.h"
#include "backend_real/images.h"
#include "backend_real/loop.h"
#include "backend_real/transport.h"
#include "core/config.h"

struct real_world;

/* What it can: enum world_capability. */
#define REAL_CAPABILITIES ((uint32_t)WORLD_PAGEABLE)

struct real_world_config {
  struct loop *loop;
  const struct config *config;
  actor_id self;
  /* Mail to other processes; records to the client, NULL: nobody listens. */
  void (*send)(void *context, actor_id to, const struct message *message);
  void (*record)(void *context, const struct record *record);
  /* Reads from a memory server failed: it was dropped and the actor told; whether it can be read again is the
   * role's to find out. May be NULL. */
  void (*peer_broken)(void *context, uint32_t server);
  /* A letter of the reader to a memory server's shelf (transport.h). NULL: nobody carries letters. */
  void (*post)(void *context, uint32_t server, const void *letter, size_t size);
  void *context;
};

struct real_world *real_world_new(const struct real_world_config *config);
/* Closes reader and device: whatever was under way is over then, and nobody is told. Before the actor goes.
 */
void real_world_close(struct real_world *rw);
void real_world_free(struct real_world *rw);
struct world *real_world_seam(struct real_world *rw);
void real_world_set_actor(struct real_world *rw, const struct actor_ops *ops, void *actor);

/* What a server's world stands on. Memory and images outlive the world; shelf too. */
void real_world_set_memory(struct real_world *rw, const struct host_memory *memory,
                           const struct images *images);
void real_world_set_shelf(struct real_world *rw, const struct transport_ops *transport, struct shelf *shelf);
gboolean real_world_open_reader(struct real_world *rw, const struct transport_ops *transport,
                                const struct transport_options *options, GError **error);
/* share: GPUs may be those of other servers too. first_gpu: ordinal of the server's first. */
gboolean real_world_open_device(struct real_world *rw, const struct device_ops *device, uint32_t gpus,
                                uint32_t first_gpu, gboolean share, uint64_t gpu_bytes, GError **error);
struct device *real_world_device(struct real_world *rw);

/* A memory server can be read, or no longer: its reads end as failed. */
void real_world_peer(struct real_world *rw, uint32_t server, const char *address,
                     const struct ticket_secret *secret);
void real_world_letter(struct real_world *rw, uint32_t server, const uint8_t *letter, size_t size);
void real_world_drop_peer(struct real_world *rw, uint32_t server);

/* The first thing that must fail a run (a wrong byte, a broken device), or NULL. */
const GError *real_world_error(const struct real_world *rw);

struct real_usage {
  double gpu_inference_ns, gpu_training_ns; /* time computing, by the device's clock */
  uint64_t net_bytes, pcie_bytes;
};
/* Of the data connections that it reads over; none before real_world_open_reader. */
void real_world_reader_state(const struct real_world *rw, struct transport_state *state);
void real_world_usage(const struct real_world *rw, struct real_usage *usage);

#endif
