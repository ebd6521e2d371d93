/* What the controller's process does for the servers' transports: agrees on one, and carries their letters.
 */
#include "backend_real/coordinator_internal.h"

#include <string.h>

/* Letters between a reader and a shelf in a second: far more than connecting anew for every one of a thousand
 * models takes, far fewer than would keep others waiting. */
#define LETTERS_MAX 2000

/* --- which transport
 * ------------------------------------------------------------------------------------------------*/

static gboolean can(const struct member *member, const char *name)
{
  g_auto(GStrv) names = g_strsplit(member->can, ",", -1);
  return g_strv_contains((const char *const *)names, name);
}

/* The first server of those that the run begins with which lacks it, or NULL. */
static const struct member *who_lacks(const struct coordinator *c, const char *name)
{
  for (guint i = 0; i < c->members->len; i++) {
    const struct member *member = &g_array_index(c->members, struct member, i);
    if (member->stage >= STAGE_LINKED && member_founds(c, member->id) && !can(member, name))
      return member;
  }
  return NULL;
}

gboolean transport_resolve(struct coordinator *c)
{
  g_autoptr(GString) why = g_string_new(NULL);
  if (strcmp(c->spec.transport, "auto") != 0)
    return TRUE;
  for (const struct transport_ops *const *t = transports(); *t; t++) {
    const struct member *without = who_lacks(c, (*t)->name);
    if (!without && (c->spec.pace_gbit_s == 0 || (*t)->paces)) {
      g_message("run %u: transport %s%s%s", c->spec.run, (*t)->name, why->len ? "; " : "", why->str);
      g_free(c->spec.transport);
      c->spec.transport = g_strdup((*t)->name);
      return TRUE;
    }
    g_string_append_printf(why, "%s%s: ", why->len ? ", " : "", (*t)->name);
    if (without)
      g_string_append_printf(why, "%s %u cannot", peer_name(without->id), ACTOR_INDEX(without->id));
    else
      g_string_append(why, "cannot be paced");
  }
  coordinator_fail(c, "there is no transport that all servers can use (%s)", why->str);
  return FALSE;
}

/* --- letters
 * --------------------------------------------------------------------------------------------------------*/

static gboolean too_many(struct coordinator *c, struct grant *grant)
{
  int64_t now = loop_now(c->loop);
  if (now - grant->letters_since >= NS_PER_S) {
    grant->letters_since = now;
    grant->letters = 0;
  }
  return ++grant->letters > LETTERS_MAX;
}

void letter_forward(struct coordinator *c, struct member *from, const uint8_t *data, size_t size)
{
  struct run_letter letter;
  g_autoptr(GVariant) hold = NULL;
  if (!run_letter_unpack(data, size, &letter, &hold)) {
    hub_expel(c->hub, from->id, "LETTER is malformed");
    return;
  }
  actor_id reader = letter.to_shelf ? from->id : letter.peer;
  actor_id shelf = letter.to_shelf ? letter.peer : from->id;
  struct grant *grant = letter.run == c->spec.run && ACTOR_KIND(shelf) == ACTOR_MEMORY_SERVER
                            ? grant_find(c, reader, ACTOR_INDEX(shelf))
                            : NULL;
  if (!grant || !grant->granted)
    return; /* one of the two has just gone */
  if (too_many(c, grant)) {
    hub_expel(c->hub, from->id, "more letters than a transport has to write");
    return;
  }
  actor_id to = letter.peer;
  letter.peer = from->id;
  coordinator_frame(c, to, FRAME_LETTER, run_letter_pack(&letter));
}
