#include "corpus.h"

#include <string.h>

struct input {
  char *name;
  uint8_t *data;
  size_t size;
};

struct corpus {
  GArray *inputs; /* of struct input */
};

static void input_clear(gpointer data)
{
  struct input *input = data;
  g_free(input->name);
  g_free(input->data);
}

struct corpus *corpus_new(void)
{
  struct corpus *corpus = g_new0(struct corpus, 1);
  corpus->inputs = g_array_new(FALSE, TRUE, sizeof(struct input));
  g_array_set_clear_func(corpus->inputs, input_clear);
  return corpus;
}

void corpus_free(struct corpus *corpus)
{
  g_array_free(corpus->inputs, TRUE);
  g_free(corpus);
}

static gboolean add_file(struct corpus *corpus, const char *path, size_t size_max, GError **error)
{
  char *data;
  gsize size;
  if (!g_file_get_contents(path, &data, &size, error))
    return FALSE;
  struct input input = {.name = g_strdup(path), .data = (uint8_t *)data, .size = size};
  g_array_append_val(corpus->inputs, input);
  if (size > size_max)
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s: larger than %zu bytes", path, size_max);
  return size <= size_max;
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

gboolean corpus_add(struct corpus *corpus, const char *path, size_t size_max, GError **error)
{
  if (!g_file_test(path, G_FILE_TEST_IS_DIR))
    return add_file(corpus, path, size_max, error);
  g_autoptr(GDir) folder = g_dir_open(path, 0, error);
  if (!folder)
    return FALSE;
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
  for (const char *name = g_dir_read_name(folder); name; name = g_dir_read_name(folder))
    g_ptr_array_add(names, g_build_filename(path, name, NULL));
  g_ptr_array_sort(names, compare_names);
  for (guint i = 0; i < names->len; i++)
    if (!corpus_add(corpus, names->pdata[i], size_max, error))
      return FALSE;
  return TRUE;
}

size_t corpus_count(const struct corpus *corpus)
{
  return corpus->inputs->len;
}

const char *corpus_name(const struct corpus *corpus, size_t index)
{
  return g_array_index(corpus->inputs, struct input, index).name;
}

const uint8_t *corpus_input(const struct corpus *corpus, size_t index, size_t *size)
{
  const struct input *input = &g_array_index(corpus->inputs, struct input, index);
  *size = input->size;
  return input->data;
}
