/* The README shows what the program prints: the table of `make demo`, to the letter. `make readme` renews it.
 */
#include "program.h"

#include <criterion/criterion.h>
#include <string.h>

#define BEGIN "<!-- output of: make demo -->\n"
#define END   "<!-- end of output -->\n"

/* The lines of the block, without the indent of four blanks that makes them verbatim. */
static char *shown_output(void)
{
  g_autofree char *text = NULL;
  cr_assert(g_file_get_contents(DM_SOURCE_DIR "/README.md", &text, NULL, NULL));
  char *begin = strstr(text, BEGIN), *end = begin ? strstr(begin, END) : NULL;
  cr_assert(begin && end, "README.md has no block of %s", BEGIN);
  *end = '\0';
  g_auto(GStrv) lines = g_strsplit(begin + strlen(BEGIN), "\n", -1);
  for (char **line = lines; *line; line++) {
    cr_assert(**line == '\0' || g_str_has_prefix(*line, "    "), "not verbatim: %s", *line);
    memmove(*line, *line + (**line ? 4 : 0), strlen(*line) - (**line ? 4 : 0) + 1);
  }
  return g_strjoinv("\n", lines);
}

Test(readme, shows_the_table_of_the_demo)
{
  g_autoptr(Folder) folder = folder_new();
  g_autoptr(ProgramOutcome) outcome =
      program_run(folder, "run", DM_SOURCE_DIR "/experiments/quickstart.ini", "--out", "x.db", NULL);
  cr_assert_eq(outcome->status, 0, "%s", outcome->err);
  g_autofree char *shown = shown_output();
  cr_assert(strlen(shown) > 500 && g_str_has_prefix(outcome->out, shown),
            "README.md shows (make readme renews it)\n%s\nthe program prints\n%s", shown, outcome->out);
}
