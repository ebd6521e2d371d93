/* Which NICs to use; see nic.h and nic_choose.h. */
#include "backend_real/nic_choose.h"

#include <string.h>

#include "backend_real/nic_gid.h"
#include "core/error.h"

#define NAMED_MAX 16

/* A NIC that may be used. Less sorts first. */
struct candidate {
  struct nic_choice choice;
  unsigned distance;
  guint order; /* as given, or in the list */
};

struct choosing {
  const struct nic_ground *ground;
  GPtrArray *nics;
  const struct nic_wish *wish;
  gboolean anywhere;               /* local is not known, or loopback */
  uint8_t local[16];               /* else: own address on the way to the peer */
  const struct nic_address *place; /* its network device, if it is one of this machine's */
  GArray *candidates;
};

/* --- what errors say
 * ---------------------------------------------------------------------------------------------*/

static void append_nic(GString *text, const struct nic *nic)
{
  const struct nic_gid *gid = nic_best_gid(nic, NULL, 0);
  char address[46];
  g_string_append_printf(text, "%s%s:%u (%s", text->len ? ", " : "", nic->device, nic->port, nic->state);
  if (gid && nic->ethernet) {
    nic_gid_text(gid, address);
    g_string_append_printf(text, ", %s", address);
  }
  g_string_append(text, ")");
}

/* "this machine has mlx5_0:1 (PORT_ACTIVE, 10.0.0.1), …" */
static char *nics_text(GPtrArray *nics)
{
  if (nics->len == 0)
    return g_strdup("this machine has no RDMA device");
  g_autoptr(GString) text = g_string_new(NULL);
  for (guint i = 0; i < MIN(nics->len, NAMED_MAX); i++)
    append_nic(text, nics->pdata[i]);
  if (nics->len > NAMED_MAX)
    g_string_append_printf(text, " and %u more", nics->len - NAMED_MAX);
  return g_strdup_printf("this machine has %s", text->str);
}

static char *gids_text(const struct nic *nic)
{
  g_autoptr(GString) text = g_string_new(NULL);
  for (guint i = 0; i < MIN(nic->gids->len, NAMED_MAX); i++) {
    const struct nic_gid *gid = &g_array_index(nic->gids, struct nic_gid, i);
    char address[46];
    nic_gid_text(gid, address);
    g_string_append_printf(text, "%s%u (%s, %s)", text->len ? ", " : "", gid->index, gid->type, address);
  }
  if (nic->gids->len > NAMED_MAX)
    g_string_append_printf(text, " and %u more", nic->gids->len - NAMED_MAX);
  return g_string_free(g_steal_pointer(&text), FALSE);
}

/* --- candidates
 * --------------------------------------------------------------------------------------------------*/

static unsigned local_bits(const struct choosing *c)
{
  return c->place ? c->place->prefix : 128;
}

static const struct nic_gid *choose_gid(const struct choosing *c, const struct nic *nic)
{
  if (c->wish->gid_given)
    return nic_gid_at(nic, c->wish->gid_index);
  return nic_best_gid(nic, c->anywhere ? NULL : c->local, local_bits(c));
}

static gint compare_candidates(gconstpointer a, gconstpointer b)
{
  const struct candidate *x = a, *y = b;
  if (x->distance != y->distance)
    return x->distance < y->distance ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

static void add_candidate(struct choosing *c, const struct nic *nic, const struct nic_gid *gid)
{
  struct candidate candidate = {.choice = {nic, *gid}, .order = c->candidates->len};
  if (c->wish->pci)
    candidate.distance = c->ground->distance(nic, c->wish->pci);
  g_array_append_val(c->candidates, candidate);
}

/* --- devices by name
 * ---------------------------------------------------------------------------------------------*/

static gboolean parse_device(const char *word, char **name, unsigned *port, GError **error)
{
  const char *colon = strchr(word, ':');
  guint64 number = 1;
  if (colon && !g_ascii_string_to_unsigned(colon + 1, 10, 1, 255, &number, NULL))
    return input_error(error, NULL, 0, "RDMA device \"%s\": expected NAME or NAME:PORT, PORT from 1 to 255",
                       word);
  *name = colon ? g_strndup(word, colon - word) : g_strdup(word);
  *port = (unsigned)number;
  return **name || input_error(error, NULL, 0,
                               "RDMA devices: expected NAME[:PORT], separated by commas, found \"%s\"", word);
}

static const struct nic *find_nic(GPtrArray *nics, const char *name, unsigned port)
{
  for (guint i = 0; i < nics->len; i++) {
    const struct nic *nic = nics->pdata[i];
    if (nic->port == port && strcmp(nic->device, name) == 0)
      return nic;
  }
  return NULL;
}

static gboolean fits_others(const struct choosing *c, const struct nic *nic, GError **error)
{
  for (guint i = 0; i < c->candidates->len; i++) {
    const struct nic *other = g_array_index(c->candidates, struct candidate, i).choice.nic;
    if (other == nic)
      return input_error(error, NULL, 0, "RDMA device %s:%u is named twice", nic->device, nic->port);
    if (other->kind != nic->kind)
      return input_error(error, NULL, 0, "RDMA devices %s and %s cannot be used together: one is EFA",
                         other->device, nic->device);
  }
  return TRUE;
}

static gboolean add_named(struct choosing *c, const char *word, GError **error)
{
  g_autofree char *name = NULL;
  unsigned port = 1;
  if (!parse_device(word, &name, &port, error))
    return FALSE;
  const struct nic *nic = find_nic(c->nics, name, port);
  g_autofree char *all = nics_text(c->nics);
  if (!nic)
    return input_error(error, NULL, 0, "no RDMA device %s with a port %u: %s", name, port, all);
  if (!nic->active)
    return input_error(error, NULL, 0, "RDMA device %s:%u is not active: %s", name, port, all);
  const struct nic_gid *gid = choose_gid(c, nic);
  g_autofree char *gids = gids_text(nic);
  if (!gid && c->wish->gid_given)
    return input_error(error, NULL, 0, "RDMA device %s:%u has no GID %u: it has %s", name, port,
                       c->wish->gid_index, *gids ? gids : "none");
  if (!gid)
    return input_error(error, NULL, 0, "RDMA device %s:%u has no GID: has its network device an address?",
                       name, port);
  if (!fits_others(c, nic, error))
    return FALSE;
  add_candidate(c, nic, gid);
  return TRUE;
}

static gboolean add_all_named(struct choosing *c, GError **error)
{
  g_auto(GStrv) words = g_strsplit(c->wish->devices, ",", -1);
  if (!words[0])
    return input_error(error, NULL, 0, "RDMA devices: expected NAME[:PORT], separated by commas, found \"\"");
  for (guint i = 0; words[i]; i++)
    if (!add_named(c, g_strstrip(words[i]), error))
      return FALSE;
  return TRUE;
}

/* --- devices by the route
 * ----------------------------------------------------------------------------------------*/

/* Whose default every fabric without a name of its own has: it tells nothing. */
static gboolean is_default_prefix(const uint8_t raw[16])
{
  static const uint8_t prefix[8] = {0xfe, 0x80};
  return memcmp(raw, prefix, sizeof prefix) == 0;
}

/* The port is under a network device with an address of local's subnet, or has the subnet prefix of one that
 * is. */
static gboolean infiniband_reaches(const struct choosing *c, const struct nic *nic)
{
  const struct nic_gid *own = nic_best_gid(nic, NULL, 0);
  const struct nic_address *place = c->place;
  if (!own || !place || !place->has_port_gid)
    return FALSE;
  if (memcmp(own->raw, place->port_gid, 16) == 0)
    return TRUE;
  if (!is_default_prefix(own->raw) && memcmp(own->raw, place->port_gid, 8) == 0)
    return TRUE;
  for (guint i = 0; i < c->ground->addresses->len; i++) {
    const struct nic_address *other = &g_array_index(c->ground->addresses, struct nic_address, i);
    if (other->has_port_gid && memcmp(own->raw, other->port_gid, 16) == 0 &&
        address_shares(other->raw, c->local, place->prefix))
      return TRUE;
  }
  return FALSE;
}

/* A GID is an address of local's subnet. Link-local ones are in the same subnet on every link: equal only. */
static gboolean ethernet_reaches(const struct choosing *c, const struct nic *nic)
{
  unsigned bits = address_is_link_local(c->local) ? 128 : local_bits(c);
  for (guint i = 0; i < nic->gids->len; i++)
    if (address_shares(g_array_index(nic->gids, struct nic_gid, i).raw, c->local, bits))
      return TRUE;
  return FALSE;
}

static gboolean rc_reaches(const struct choosing *c, const struct nic *nic)
{
  return nic->kind == NIC_RC && (nic->ethernet ? ethernet_reaches(c, nic) : infiniband_reaches(c, nic));
}

/* EFA devices have no network device: those of a machine all reach its subnet, through whatever interface
 * its address is on. */
static gboolean srd_reaches(const struct choosing *c, const struct nic *nic)
{
  (void)c;
  return nic->kind == NIC_SRD;
}

static gboolean any_reaches(const struct choosing *c, const struct nic *nic)
{
  (void)c;
  (void)nic;
  return TRUE;
}

static void add_reaching(struct choosing *c, gboolean (*reaches)(const struct choosing *, const struct nic *))
{
  for (guint i = 0; i < c->nics->len; i++) {
    const struct nic *nic = c->nics->pdata[i];
    const struct nic_gid *gid = nic->active && reaches(c, nic) ? choose_gid(c, nic) : NULL;
    if (gid)
      add_candidate(c, nic, gid);
  }
}

static gboolean none_found(const struct choosing *c, GError **error)
{
  g_autofree char *all = nics_text(c->nics);
  g_autofree char *index = c->wish->gid_given ? g_strdup_printf(" %u", c->wish->gid_index) : g_strdup("");
  g_autofree char *gid = c->wish->gid_given ? g_strconcat(" with a GID", index, NULL) : g_strdup("");
  if (c->nics->len == 0)
    return input_error(error, NULL, 0, "this machine has no RDMA device");
  if (c->anywhere)
    return input_error(error, NULL, 0, "no active RDMA device has a GID%s: %s", index, all);
  return input_error(error, NULL, 0,
                     "no active RDMA device%s has the address %s: %s (--rdma-device chooses one)", gid,
                     c->wish->local, all);
}

/* Where both ends are one machine, both must take the same NIC: the first. */
static gboolean add_by_route(struct choosing *c, GError **error)
{
  if (c->anywhere) {
    add_reaching(c, any_reaches);
    if (!c->wish->local)
      g_array_sort(c->candidates, compare_candidates);
    if (c->candidates->len > 1)
      g_array_set_size(c->candidates, 1);
  } else {
    add_reaching(c, rc_reaches);
    if (c->candidates->len == 0)
      add_reaching(c, srd_reaches);
  }
  return c->candidates->len > 0 || none_found(c, error);
}

/* --- the choice
 * --------------------------------------------------------------------------------------------------*/

/* Those that were asked for by name as they were: all are used, and the other end's are paired with them in
 * order. Of others only the nearest. */
static GArray *best_first(struct choosing *c)
{
  GArray *chosen = g_array_new(FALSE, FALSE, sizeof(struct nic_choice));
  if (!c->wish->devices)
    g_array_sort(c->candidates, compare_candidates);
  for (guint i = 0; i < c->candidates->len; i++) {
    const struct candidate *candidate = &g_array_index(c->candidates, struct candidate, i);
    if (c->wish->devices || candidate->distance == g_array_index(c->candidates, struct candidate, 0).distance)
      g_array_append_val(chosen, candidate->choice);
  }
  return chosen;
}

static void find_place(struct choosing *c)
{
  for (guint i = 0; !c->anywhere && i < c->ground->addresses->len; i++) {
    const struct nic_address *address = &g_array_index(c->ground->addresses, struct nic_address, i);
    if (memcmp(address->raw, c->local, 16) == 0) {
      c->place = address;
      return;
    }
  }
}

GArray *nics_choose_on(const struct nic_ground *ground, GPtrArray *nics, const struct nic_wish *wish,
                       GError **error)
{
  struct choosing c = {.ground = ground, .nics = nics, .wish = wish, .anywhere = !wish->local};
  if (wish->local && !address_parse(wish->local, c.local)) {
    input_error(error, NULL, 0, "expected an IPv4 or IPv6 address, found \"%s\"", wish->local);
    return NULL;
  }
  c.anywhere = c.anywhere || address_is_loopback(c.local);
  find_place(&c);
  c.candidates = g_array_new(FALSE, FALSE, sizeof(struct candidate));
  gboolean good = wish->devices ? add_all_named(&c, error) : add_by_route(&c, error);
  GArray *chosen = good ? best_first(&c) : NULL;
  g_array_unref(c.candidates);
  return chosen;
}
