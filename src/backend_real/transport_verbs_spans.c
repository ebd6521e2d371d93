/* Parts of images; see transport_verbs_spans.h. */
#include "backend_real/transport_verbs_spans.h"

struct spans {
  GTree *tree; /* span -> the same */
};

struct visit {
  gboolean (*each)(struct span *span, void *context);
  void *context;
};

static gint compare(gconstpointer a, gconstpointer b, gpointer data)
{
  const struct span *x = a, *y = b;
  (void)data;
  if (x->model != y->model)
    return x->model < y->model ? -1 : 1;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

struct spans *spans_new(void)
{
  struct spans *spans = g_new0(struct spans, 1);
  spans->tree = g_tree_new_full(compare, NULL, NULL, NULL);
  return spans;
}

void spans_free(struct spans *spans)
{
  if (!spans)
    return;
  g_tree_destroy(spans->tree);
  g_free(spans);
}

uint32_t spans_count(const struct spans *spans)
{
  return (uint32_t)g_tree_nnodes(spans->tree);
}

void spans_add(struct spans *spans, struct span *span)
{
  g_tree_insert(spans->tree, span, span);
}

void spans_remove(struct spans *spans, struct span *span)
{
  g_tree_remove(spans->tree, span);
}

struct span *spans_first(const struct spans *spans, uint32_t model, uint64_t offset, uint64_t bytes)
{
  const struct span at = {.model = model, .offset = offset};
  GTreeNode *after = g_tree_upper_bound(spans->tree, &at);
  GTreeNode *before = after ? g_tree_node_previous(after) : g_tree_node_last(spans->tree);
  struct span *span = before ? g_tree_node_value(before) : NULL;
  if (span && span->model == model && offset - span->offset < span->bytes)
    return span;
  span = after ? g_tree_node_value(after) : NULL;
  return span && span->model == model && span->offset - offset < bytes ? span : NULL;
}

static gboolean visit(gpointer key, gpointer value, gpointer data)
{
  const struct visit *v = data;
  (void)key;
  return !v->each(value, v->context);
}

void spans_each(const struct spans *spans, gboolean (*each)(struct span *span, void *context), void *context)
{
  struct visit v = {each, context};
  g_tree_foreach(spans->tree, visit, &v);
}
