/* The cluster file: where the controller listens, and which keys its peers hold. One file for all machines of
 * a cluster; paths in it are relative to it.
 *
 *     [cluster]
 *     controller = 10.0.0.1:7700          # or tcp://…
 *     controller_key = keys/controller.pub
 *     controller_secret = keys/controller.secret   # read by the controller alone
 *     authorized = keys/peers                      # folder of their public keys, or one; the controller's
 *     key = keys/peer.secret                       # read by everybody else
 *
 * Without keys (all left out) the controller listens on loopback only. */
#ifndef DM_CLUSTER_FILE_H
#define DM_CLUSTER_FILE_H

#include "backend_real/control.h"

struct cluster_file {
  char *path;
  char *controller;                                            /* tcp://HOST:PORT */
  char *controller_key, *controller_secret, *authorized, *key; /* paths, or NULL */
};

struct cluster_file *cluster_file_load(const char *path, GError **error);
void cluster_file_free(struct cluster_file *file);
typedef struct cluster_file ClusterFile;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ClusterFile, cluster_file_free)

/* What a peer links with; the strings and keys live in *link_keys and the file. */
struct link_keys {
  struct key_pair own;
  char server[KEY_TEXT];
};
gboolean cluster_file_link(const struct cluster_file *file, struct link_keys *keys, struct link_config *link,
                           GError **error);
gboolean cluster_file_hub(const struct cluster_file *file, struct key_pair *keys, struct hub_config *hub,
                          GError **error);

#endif
