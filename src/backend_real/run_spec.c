/* Payloads; see run_spec.h. */
#include "backend_real/run_spec.h"

#include <string.h>
#include "backend_real/control_frame.h"
#include "backend_real/real_world.h"
#include "core/error.h"
#include "harness/command.h"
#include "harness/shown.h"

/* NULL: not of this type, or not in normal form. */
static GVariant *parse(const char *type, const uint8_t *data, size_t size)
{
  g_autoptr(GBytes) bytes = g_bytes_new(data, size);
  g_autoptr(GVariant) value =
      g_variant_ref_sink(g_variant_new_from_bytes(G_VARIANT_TYPE(type), bytes, FALSE));
  return g_variant_is_normal_form(value) ? g_steal_pointer(&value) : NULL;
}

static GBytes *pack(GVariant *value)
{
  g_autoptr(GVariant) sunk = g_variant_ref_sink(value);
  return g_variant_get_data_as_bytes(sunk);
}

/* --- the run
 * --------------------------------------------------------------------------------------------------------*/

/* GVariant's strings are UTF-8. Paths are bytes, which need not be; what else a user types has been checked.
 */
#define SPEC_TYPE "(suaysasssdaybb)"

void run_spec_clear(struct run_spec *spec)
{
  g_free(spec->experiment);
  g_free(spec->system);
  g_strfreev(spec->sets);
  g_free(spec->device);
  g_free(spec->transport);
  g_free(spec->image_folder);
  *spec = (struct run_spec){0};
}

GBytes *run_spec_pack(const struct run_spec *spec)
{
  static const char *const none[] = {NULL};
  return pack(g_variant_new("(su^ays^asssd^aybb)", program_version(), spec->run, spec->experiment,
                            spec->system, spec->sets ? (const char *const *)spec->sets : none, spec->device,
                            spec->transport, spec->pace_gbit_s, spec->image_folder, spec->share_gpus,
                            spec->records));
}

gboolean run_spec_unpack(const uint8_t *data, size_t size, struct run_spec *spec)
{
  g_autoptr(GVariant) value = parse(SPEC_TYPE, data, size);
  *spec = (struct run_spec){0};
  if (!value)
    return FALSE;
  g_autofree char *version = NULL; /* for those who look at the wire; the digest decides */
  g_variant_get(value, "(su^ays^asssd^aybb)", &version, &spec->run, &spec->experiment, &spec->system,
                &spec->sets, &spec->device, &spec->transport, &spec->pace_gbit_s, &spec->image_folder,
                &spec->share_gpus, &spec->records);
  return TRUE;
}

gboolean run_spec_load(const struct run_spec *spec, struct experiment **experiment, struct setup **setup,
                       GError **error)
{
  *setup = NULL;
  *experiment = experiment_load(spec->experiment, spec->system, spec->sets, error);
  if (*experiment)
    *setup = setup_new(*experiment, REAL_CAPABILITIES, TRUE, error);
  if (*setup)
    return TRUE;
  experiment_free(*experiment);
  *experiment = NULL;
  return FALSE;
}

/* --- ready
 * ----------------------------------------------------------------------------------------------------------*/

void run_ready_clear(struct run_ready *ready)
{
  g_free(ready->address);
  g_free(ready->text);
  *ready = (struct run_ready){0};
}

/* The rest of a READY, its address included. */
#define READY_REST_BYTES 256

GBytes *run_ready_pack(const struct run_ready *ready)
{
  g_autofree char *text = shown_cut(ready->text, frame_payload_max(FRAME_READY) - READY_REST_BYTES);
  return pack(g_variant_new("(utss)", ready->run, ready->digest, ready->address ? ready->address : "", text));
}

gboolean run_ready_unpack(const uint8_t *data, size_t size, struct run_ready *ready)
{
  g_autoptr(GVariant) value = parse("(utss)", data, size);
  *ready = (struct run_ready){0};
  if (!value)
    return FALSE;
  g_variant_get(value, "(utss)", &ready->run, &ready->digest, &ready->address, &ready->text);
  return TRUE;
}

/* --- peers
 * ----------------------------------------------------------------------------------------------------------*/

static GVariant *secret_variant(const struct ticket_secret *secret)
{
  return g_variant_new_fixed_array(G_VARIANT_TYPE_BYTE, secret->key, sizeof secret->key, 1);
}

static gboolean secret_read(GVariant *value, struct ticket_secret *secret)
{
  gsize length;
  const void *key = g_variant_get_fixed_array(value, &length, 1);
  if (length != sizeof secret->key)
    return FALSE;
  memcpy(secret->key, key, length);
  return TRUE;
}

GBytes *run_peers_pack(uint32_t run, const GArray *peers)
{
  GVariantBuilder list;
  g_variant_builder_init(&list, G_VARIANT_TYPE("a(usay)"));
  for (guint i = 0; i < peers->len; i++) {
    const struct run_peer *peer = &g_array_index(peers, struct run_peer, i);
    g_variant_builder_add(&list, "(us@ay)", peer->server, peer->address, secret_variant(&peer->secret));
  }
  return pack(g_variant_new("(ua(usay))", run, &list));
}

GArray *run_peers_unpack(const uint8_t *data, size_t size, uint32_t *run)
{
  g_autoptr(GVariant) value = parse("(ua(usay))", data, size);
  if (!value)
    return NULL;
  g_autoptr(GVariantIter) list = NULL;
  g_autoptr(GArray) peers = g_array_new(FALSE, TRUE, sizeof(struct run_peer));
  g_variant_get(value, "(ua(usay))", run, &list);
  struct run_peer peer = {0};
  const char *address;
  GVariant *secret;
  while (g_variant_iter_next(list, "(u&s@ay)", &peer.server, &address, &secret)) {
    gboolean good = secret_read(secret, &peer.secret) && peer.server < MEMORY_SERVERS_MAX &&
                    g_strlcpy(peer.address, address, sizeof peer.address) < sizeof peer.address;
    g_variant_unref(secret);
    if (!good)
      return NULL;
    g_array_append_val(peers, peer);
  }
  return g_steal_pointer(&peers);
}

GBytes *run_grant_pack(uint32_t run, actor_id reader, const struct ticket_secret *secret)
{
  return pack(g_variant_new("(uu@ay)", run, reader, secret_variant(secret)));
}

gboolean run_grant_unpack(const uint8_t *data, size_t size, uint32_t *run, actor_id *reader,
                          struct ticket_secret *secret)
{
  g_autoptr(GVariant) value = parse("(uuay)", data, size);
  g_autoptr(GVariant) key = NULL;
  if (!value)
    return FALSE;
  g_variant_get(value, "(uu@ay)", run, reader, &key);
  return secret_read(key, secret);
}

/* --- letters
 * --------------------------------------------------------------------------------------------------------*/

GBytes *run_letter_pack(const struct run_letter *letter)
{
  return pack(g_variant_new("(uub@ay)", letter->run, letter->peer, letter->to_shelf,
                            g_variant_new_fixed_array(G_VARIANT_TYPE_BYTE, letter->bytes, letter->size, 1)));
}

gboolean run_letter_unpack(const uint8_t *data, size_t size, struct run_letter *letter, GVariant **hold)
{
  g_autoptr(GVariant) value = parse("(uubay)", data, size);
  GVariant *bytes;
  if (!value)
    return FALSE;
  *letter = (struct run_letter){0};
  g_variant_get(value, "(uub@ay)", &letter->run, &letter->peer, &letter->to_shelf, &bytes);
  letter->bytes = g_variant_get_fixed_array(bytes, &letter->size, 1);
  if (letter->size <= LETTER_BYTES_MAX) {
    *hold = bytes;
    return TRUE;
  }
  g_variant_unref(bytes);
  return FALSE;
}

/* --- meters
 * ---------------------------------------------------------------------------------------------------------*/

#define METER_TYPE "(uutt(ddddd)(tt)att(tttttt)s)"

GBytes *run_meter_pack(const struct run_meter *m)
{
  const struct usage *u = &m->usage;
  g_autofree char *failure = shown_cut(m->failure, sizeof m->failure - 1);
  GVariant *loads =
      g_variant_new_fixed_array(G_VARIANT_TYPE_UINT64, u->loads, LOAD_SOURCES, sizeof(uint64_t));
  return pack(g_variant_new("(uutt(ddddd)(tt)@att(tttttt)s)", m->run, m->number, m->jobs_left, m->jobs_seen,
                            u->gpu_inference_ns, u->gpu_training_ns, u->gpu_any_ns, u->gpu_held_ns,
                            u->gpu_there_ns, u->net_bytes, u->pcie_bytes, loads, u->process_starts,
                            u->evictions, u->training_steps, u->queue, u->jobs_done, u->host_bytes,
                            u->pool_bytes, failure));
}

gboolean run_meter_unpack(const uint8_t *data, size_t size, struct run_meter *m)
{
  g_autoptr(GVariant) value = parse(METER_TYPE, data, size);
  g_autoptr(GVariant) loads = NULL;
  struct usage *u = &m->usage;
  const char *failure;
  gsize count;
  *m = (struct run_meter){0};
  if (!value)
    return FALSE;
  g_variant_get(value, "(uutt(ddddd)(tt)@att(tttttt)&s)", &m->run, &m->number, &m->jobs_left, &m->jobs_seen,
                &u->gpu_inference_ns, &u->gpu_training_ns, &u->gpu_any_ns, &u->gpu_held_ns, &u->gpu_there_ns,
                &u->net_bytes, &u->pcie_bytes, &loads, &u->process_starts, &u->evictions, &u->training_steps,
                &u->queue, &u->jobs_done, &u->host_bytes, &u->pool_bytes, &failure);
  const uint64_t *each = g_variant_get_fixed_array(loads, &count, sizeof(uint64_t));
  if (count != LOAD_SOURCES)
    return FALSE;
  memcpy(u->loads, each, sizeof u->loads);
  g_strlcpy(m->failure, failure, sizeof m->failure);
  return TRUE;
}

GBytes *run_failed_pack(uint32_t run, const char *text)
{
  g_autofree char *valid = shown_cut(text, frame_payload_max(FRAME_FAILED) - sizeof(uint32_t) - 1);
  return pack(g_variant_new("(us)", run, valid));
}

gboolean run_failed_unpack(const uint8_t *data, size_t size, uint32_t *run, char **text)
{
  g_autoptr(GVariant) value = parse("(us)", data, size);
  if (value)
    g_variant_get(value, "(us)", run, text);
  return value != NULL;
}

GBytes *run_numbers_pack(uint32_t run, uint32_t number)
{
  return pack(g_variant_new("(uu)", run, number));
}

gboolean run_numbers_unpack(const uint8_t *data, size_t size, uint32_t *run, uint32_t *number)
{
  g_autoptr(GVariant) value = parse("(uu)", data, size);
  if (value)
    g_variant_get(value, "(uu)", run, number);
  return value != NULL;
}
