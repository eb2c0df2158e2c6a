/* Tools for a session's files, which are accessed from outside by descriptor: read_file, write_file, edit_file,
   list_dir, glob, grep. */
#pragma once
#include "mcp/tools/tool.h"

#define MAX_FILE (16u << 20) /* size limit of a file to be read, and of the answer with it */

extern const struct tool tool_read_file, tool_write_file, tool_edit_file, tool_list_dir, tool_glob, tool_grep;
