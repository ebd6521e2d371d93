/* The servers of the controller's process: their stages, and who may read whom. */
#include "backend_real/coordinator_internal.h"

#include <string.h>

struct member *member_find(struct coordinator *c, actor_id id)
{
  for (guint i = 0; i < c->members->len; i++)
    if (g_array_index(c->members, struct member, i).id == id)
      return &g_array_index(c->members, struct member, i);
  return NULL;
}

gboolean member_founds(const struct coordinator *c, actor_id id)
{
  const struct config *config = &c->setup->config;
  uint32_t at_start =
      ACTOR_KIND(id) == ACTOR_GPU_SERVER ? config->servers_at_start : config->memory_servers_at_start;
  return ACTOR_INDEX(id) < at_start;
}

gboolean member_has_place(const struct coordinator *c, actor_id id)
{
  const struct config *config = &c->setup->config;
  uint32_t places = ACTOR_KIND(id) == ACTOR_GPU_SERVER ? config->servers : config->memory_servers;
  return ACTOR_INDEX(id) < places;
}

static gboolean has_stage(const struct coordinator *c, actor_id id, enum member_stage stage)
{
  const struct member *member = member_find((struct coordinator *)c, id);
  return member && member->stage >= stage;
}

gboolean members_all(const struct coordinator *c, enum member_stage stage)
{
  const struct config *config = &c->setup->config;
  for (uint32_t i = 0; i < config->servers_at_start; i++)
    if (!has_stage(c, ACTOR(ACTOR_GPU_SERVER, i), stage))
      return FALSE;
  for (uint32_t i = 0; i < config->memory_servers_at_start; i++)
    if (!has_stage(c, ACTOR(ACTOR_MEMORY_SERVER, i), stage))
      return FALSE;
  return TRUE;
}

/* --- links
 * ----------------------------------------------------------------------------------------------------------*/

void member_linked(struct coordinator *c, actor_id id, const char *can)
{
  struct member *member = member_find(c, id);
  if (!member) {
    struct member fresh = {.id = id};
    g_array_append_val(c->members, fresh);
    member = member_find(c, id);
  }
  member->stage = STAGE_LINKED;
  g_strlcpy(member->can, can, sizeof member->can);
  if (c->stage >= RUN_PREPARING && c->stage <= RUN_ON && member_has_place(c, id))
    member_prepare(c, member);
}

/* One that was expelled, or hangs, may have its data connections still, and its secrets in any case. */
static void grants_remove(struct coordinator *c, const struct member *member)
{
  for (guint i = c->grants->len; i-- > 0;) {
    const struct grant *grant = &g_array_index(c->grants, struct grant, i);
    actor_id shelf = ACTOR(ACTOR_MEMORY_SERVER, grant->shelf);
    if (grant->reader == member->id)
      coordinator_frame(c, shelf, FRAME_REVOKE, run_numbers_pack(c->spec.run, member->id));
    if (grant->reader == member->id || shelf == member->id)
      g_array_remove_index_fast(c->grants, i);
  }
}

void member_lost(struct coordinator *c, struct member *member)
{
  grants_remove(c, member);
  usage_add(&member->before, &member->usage);
  member->usage = (struct usage){0};
  member->stage = STAGE_GONE;
  member->up = FALSE;
  g_clear_pointer(&member->address, g_free);
  g_clear_pointer(&member->text, g_free);
}

/* --- getting ready
 * --------------------------------------------------------------------------------------------------*/

void member_prepare(struct coordinator *c, struct member *member)
{
  member->stage = STAGE_PREPARING;
  coordinator_frame(c, member->id, FRAME_PREPARE, run_spec_pack(&c->spec));
}

/* The end of a run that cannot begin without it. */
static void cannot_take_part(struct coordinator *c, struct member *member, const char *why)
{
  member->stage = STAGE_LINKED;
  if (c->stage < RUN_ON && member_founds(c, member->id))
    coordinator_fail(c, "%s", why);
  else
    g_warning("run %u goes on without %s", c->spec.run, why);
}

void member_ready(struct coordinator *c, struct member *member, const uint8_t *data, size_t size)
{
  struct run_ready ready;
  if (!run_ready_unpack(data, size, &ready)) {
    hub_expel(c->hub, member->id, "READY is malformed");
    return;
  }
  if (ready.run == c->spec.run && member->stage == STAGE_PREPARING &&
      ready.digest != setup_digest(c->setup)) {
    g_autofree char *text = g_strdup_printf(
        "%s: its experiment, profiles or hardware files are not the controller's", ready.text);
    cannot_take_part(c, member, text);
  } else if (ready.run == c->spec.run && member->stage == STAGE_PREPARING) {
    member->stage = STAGE_READY;
    member->address = g_steal_pointer(&ready.address);
    member->text = g_steal_pointer(&ready.text);
    coordinator_members_changed(c);
  }
  run_ready_clear(&ready);
}

void member_failed(struct coordinator *c, struct member *member, const uint8_t *data, size_t size)
{
  uint32_t run;
  g_autofree char *text = NULL;
  if (!run_failed_unpack(data, size, &run, &text)) {
    hub_expel(c->hub, member->id, "FAILED is malformed");
    return;
  }
  if (run == c->spec.run && member->stage == STAGE_PREPARING)
    cannot_take_part(c, member, text);
}

/* --- who may read whom
 * ----------------------------------------------------------------------------------------------*/

struct grant *grant_find(struct coordinator *c, actor_id reader, uint32_t shelf)
{
  for (guint i = 0; i < c->grants->len; i++) {
    struct grant *grant = &g_array_index(c->grants, struct grant, i);
    if (grant->reader == reader && grant->shelf == shelf)
      return grant;
  }
  return NULL;
}

static void grant_issue(struct coordinator *c, actor_id reader, uint32_t shelf)
{
  g_autoptr(GError) error = NULL;
  struct grant grant = {.reader = reader, .shelf = shelf};
  if (!ticket_secret_random(&grant.secret, &error)) {
    coordinator_fail(c, "%s", error->message);
    return;
  }
  g_array_append_val(c->grants, grant);
  coordinator_frame(c, ACTOR(ACTOR_MEMORY_SERVER, shelf), FRAME_GRANT,
                    run_grant_pack(c->spec.run, reader, &grant.secret));
}

static gboolean is_shelf(const struct member *member)
{
  return ACTOR_KIND(member->id) == ACTOR_MEMORY_SERVER && member->stage >= STAGE_READY;
}

static void grants_issue(struct coordinator *c)
{
  for (guint s = 0; s < c->members->len; s++) {
    const struct member *shelf = &g_array_index(c->members, struct member, s);
    for (guint r = 0; is_shelf(shelf) && r < c->members->len; r++) {
      const struct member *reader = &g_array_index(c->members, struct member, r);
      if (reader->stage >= STAGE_READY && reader != shelf &&
          !grant_find(c, reader->id, ACTOR_INDEX(shelf->id)))
        grant_issue(c, reader->id, ACTOR_INDEX(shelf->id));
    }
  }
}

static gboolean grants_all(const struct coordinator *c)
{
  for (guint i = 0; i < c->grants->len; i++)
    if (!g_array_index(c->grants, struct grant, i).granted)
      return FALSE;
  return TRUE;
}

static void send_go(struct coordinator *c, struct member *member)
{
  g_autoptr(GArray) peers = g_array_new(FALSE, TRUE, sizeof(struct run_peer));
  for (guint i = 0; i < c->members->len; i++) {
    const struct member *shelf = &g_array_index(c->members, struct member, i);
    const struct grant *grant = is_shelf(shelf) ? grant_find(c, member->id, ACTOR_INDEX(shelf->id)) : NULL;
    if (!grant)
      continue;
    struct run_peer peer = {.server = grant->shelf, .secret = grant->secret};
    g_strlcpy(peer.address, shelf->address, sizeof peer.address);
    g_array_append_val(peers, peer);
  }
  member->stage = STAGE_GOING;
  coordinator_frame(c, member->id, FRAME_GO, run_peers_pack(c->spec.run, peers));
}

void members_connect(struct coordinator *c)
{
  if (c->stage > RUN_ON)
    return;
  grants_issue(c);
  if (c->stage < RUN_STARTING || !grants_all(c))
    return;
  if (!c->controller)
    coordinator_start(c);
  for (guint i = 0; i < c->members->len; i++)
    if (g_array_index(c->members, struct member, i).stage >= STAGE_READY)
      send_go(c, &g_array_index(c->members, struct member, i));
}

void member_granted(struct coordinator *c, struct member *member, const uint8_t *data, size_t size)
{
  uint32_t run, reader;
  if (!run_numbers_unpack(data, size, &run, &reader) || run != c->spec.run)
    return;
  struct grant *grant = grant_find(c, reader, ACTOR_INDEX(member->id));
  if (!grant)
    return;
  grant->granted = TRUE;
  if (grants_all(c))
    coordinator_members_changed(c);
}

void members_end(struct coordinator *c)
{
  g_array_set_size(c->grants, 0);
  for (guint i = c->members->len; i-- > 0;) {
    struct member *member = &g_array_index(c->members, struct member, i);
    g_clear_pointer(&member->address, g_free);
    g_clear_pointer(&member->text, g_free);
    member->usage = member->before = (struct usage){0};
    member->up = FALSE;
    if (member->stage == STAGE_GONE)
      g_array_remove_index_fast(c->members, i);
    else
      member->stage = STAGE_LINKED;
  }
}
