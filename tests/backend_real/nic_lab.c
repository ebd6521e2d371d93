/* Made-up NICs; see nic_lab.h. */
#include "nic_lab.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "backend_real/nic_gid.h"
#include "core/error.h"

static void free_nic(gpointer data)
{
  struct nic *nic = data;
  g_array_unref(nic->gids);
  g_free(nic);
}

static long bus(const char *pci)
{
  return strlen(pci) > 5 ? strtol(pci + 5, NULL, 16) : -1;
}

static unsigned bus_distance(const struct nic *nic, const char *pci)
{
  return bus(nic->pci) < 0 || bus(pci) < 0 ? 1000 : (unsigned)labs(bus(nic->pci) - bus(pci));
}

NicLab *nic_lab_new(void)
{
  NicLab *lab = g_new(NicLab, 1);
  *lab = (NicLab){g_ptr_array_new_with_free_func(free_nic),
                  {g_array_new(FALSE, FALSE, sizeof(struct nic_address)), bus_distance}};
  return lab;
}

void nic_lab_free(NicLab *lab)
{
  g_ptr_array_unref(lab->nics);
  g_array_unref(lab->ground.addresses);
  g_free(lab);
}

static void add_gid(GArray *gids, const char *word)
{
  g_auto(GStrv) part = g_strsplit(word, " ", 3);
  struct nic_gid gid = {.index = (uint32_t)atoi(part[0]),
                        .type = *part[1] == '1'   ? "RoCE v1"
                                : *part[1] == '2' ? "RoCE v2"
                                                  : "IB"};
  cr_assert(address_parse(part[2], gid.raw), "%s", word);
  g_array_append_val(gids, gid);
}

static struct nic *add(NicLab *lab, const char *device, const char *pci, const char *gids)
{
  struct nic *nic = g_new0(struct nic, 1);
  g_strlcpy(nic->device, device, sizeof nic->device);
  g_strlcpy(nic->pci, pci, sizeof nic->pci);
  g_strlcpy(nic->state, "PORT_ACTIVE", sizeof nic->state);
  nic->port = 1;
  nic->active = TRUE;
  nic->numa = -1;
  nic->gids = g_array_new(FALSE, FALSE, sizeof(struct nic_gid));
  g_auto(GStrv) words = g_strsplit(gids, ",", -1);
  for (guint i = 0; words[i]; i++)
    add_gid(nic->gids, words[i]);
  g_ptr_array_add(lab->nics, nic);
  return nic;
}

struct nic *lab_roce(NicLab *lab, const char *device, const char *pci, const char *gids)
{
  struct nic *nic = add(lab, device, pci, gids);
  nic->ethernet = TRUE;
  return nic;
}

struct nic *lab_infiniband(NicLab *lab, const char *device, const char *pci, const char *gids)
{
  return add(lab, device, pci, gids);
}

struct nic *lab_efa(NicLab *lab, const char *device, const char *pci, const char *gids)
{
  struct nic *nic = add(lab, device, pci, gids);
  nic->kind = NIC_SRD;
  return nic;
}

void lab_address(NicLab *lab, const char *address, const char *port_gid)
{
  g_auto(GStrv) part = g_strsplit(address, "/", 2);
  struct nic_address made = {.has_port_gid = port_gid != NULL};
  cr_assert(address_parse(part[0], made.raw), "%s", address);
  made.prefix = (unsigned)atoi(part[1]) + (address_is_ipv4(made.raw) ? 96 : 0);
  cr_assert(!port_gid || address_parse(port_gid, made.port_gid), "%s", port_gid);
  g_array_append_val(lab->ground.addresses, made);
}

char *lab_choose(NicLab *lab, const struct nic_wish *wish)
{
  GError *error = NULL;
  g_autoptr(GArray) chosen = nics_choose_on(&lab->ground, lab->nics, wish, &error);
  cr_assert((chosen != NULL) == (error == NULL));
  if (error) {
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
    cr_assert(!strchr(error->message, '\n'));
    char *text = g_strconcat("! ", error->message, NULL);
    g_error_free(error);
    return text;
  }
  cr_assert_gt(chosen->len, 0);
  g_autoptr(GString) text = g_string_new(NULL);
  for (guint i = 0; i < chosen->len; i++) {
    const struct nic_choice *choice = &g_array_index(chosen, struct nic_choice, i);
    g_string_append_printf(text, "%s%s:%u/%u", i ? " " : "", choice->nic->device, choice->nic->port,
                           choice->gid.index);
  }
  return g_string_free(g_steal_pointer(&text), FALSE);
}
